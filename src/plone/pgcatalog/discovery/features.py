"""What the results of a tool can do besides being brains; see ``results.features.Features``."""

from plone.pgcatalog.discovery.facets import facet_counts
from plone.pgcatalog.discovery.facets import facets
from plone.pgcatalog.discovery.snippets import highlighter
from plone.pgcatalog.discovery.snippets import snippets


__all__ = ["facet_counts", "facets", "highlighter", "snippets"]
