"""For tests and demos: PostgreSQL servers that need no installation."""
