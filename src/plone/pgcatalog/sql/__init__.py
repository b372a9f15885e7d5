"""SQL as values; imports no other part of this package."""
