"""The soak, ``python -m checks.soak``: load over HTTP on a site while its PostgreSQL is killed."""
