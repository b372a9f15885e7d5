"""The site's search page as data: its request, facets, hits and links, for the pages of ``classic`` and ``restapi``."""
