"""Figures for monitoring: of this process, and of the database."""
