"""The demo: one command for a Plone site with its catalog in PostgreSQL.

``python -m demo --help`` lists the options.  ``words`` and ``plan`` are pure data, the same for the same seed.
"""
