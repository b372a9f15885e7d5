"""Stable import paths that the documentation names."""
