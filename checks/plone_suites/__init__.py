"""The test suites of Plone's own packages, run with a replaced portal_catalog (see README.md)."""
