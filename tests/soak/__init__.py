"""The soak, ``python -m tests.soak``: load over HTTP on a site whose PostgreSQL is killed meanwhile."""
