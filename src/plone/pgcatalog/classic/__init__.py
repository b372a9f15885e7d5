"""Additions to the pages of Plone's Classic UI."""
