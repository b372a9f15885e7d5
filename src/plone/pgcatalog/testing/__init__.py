"""For tests and demos: PostgreSQL servers that need no installation, and layers on them."""
