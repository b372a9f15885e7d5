"""SQL as values; imports nothing of ours."""
