"""The test suites of Plone's own packages as judges of a replaced portal_catalog (see README.md)."""
