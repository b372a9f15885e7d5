"""ZCatalog's internal API, for code that uses it directly."""
