"""Rehearsal of the migration: a site's own queries, run by its catalog and by plone.pgcatalog's in a scratch copy."""
