"""Query dict to SQL.  Pure: no connection, no Plone."""
