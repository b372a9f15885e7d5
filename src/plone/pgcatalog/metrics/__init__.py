"""Figures for monitoring, of the process and of the database."""
