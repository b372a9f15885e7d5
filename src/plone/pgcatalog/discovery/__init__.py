"""Aids to searching: facets, snippets, suggestions, similar pages."""
