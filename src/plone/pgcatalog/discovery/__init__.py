"""What helps to find: facets, snippets, suggestions, similar pages."""
