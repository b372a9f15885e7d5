"""The demo: one command to a Plone site whose catalog is PostgreSQL.

``python -m demo --help`` tells the options.

==============  ==============================================================
``__main__``    the command line and the order of things
``server``      PostgreSQL, Zope and the HTTP server, without buildout
``run``         what is done once Zope runs
``site``        the Plone site: made once, found again
``words``       German, English and Chinese words and sentences (``vocabulary``)
``plan``        what the site contains, and its people: pure data, the same for
                the same seed
``content``     the plan made real, in batches
``front_page``  what to try, and what has to be there for it
``tour``        ten typical queries with counts and timings
``check``       every tour query asked of ours and of a ZCatalog in memory, every
                difference named
``fetch``       the site looked at over HTTP
==============  ==============================================================
"""
