"""Advice on SQL indexes that would speed up slow queries."""
