"""Answers for the inside of a ZCatalog, to code that reaches there."""
