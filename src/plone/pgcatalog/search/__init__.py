"""Import paths of the documentation that stay."""
