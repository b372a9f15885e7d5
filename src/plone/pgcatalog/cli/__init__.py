"""The command ``pgcatalog``."""
