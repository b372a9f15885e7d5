"""The soak, ``python -m tests.soak``: load over HTTP on a site while its PostgreSQL is killed."""
