"""A rehearsal of the migration: a site's own queries, asked of its catalog and of ours in a scratch copy."""
