"""Services of plone.restapi: search with facets and snippets, suggestions."""
