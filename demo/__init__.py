"""The demo: one command to a Plone site whose catalog is PostgreSQL.

``python -m demo --help`` tells the options.  ``words`` and ``plan`` are pure data, the same for the same seed.
"""
