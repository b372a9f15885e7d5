"""pytest fixtures for the layers, created by pytest-plone: ``integration``, ``functional`` and ``acceptance``.

Packages without their own layers put ``pytest_plugins = ["plone.pgcatalog.testing.fixtures"]`` in ``conftest.py``.
"""

from plone.pgcatalog.testing.layers import PGCATALOG_ACCEPTANCE_TESTING
from plone.pgcatalog.testing.layers import PGCATALOG_FUNCTIONAL_TESTING
from plone.pgcatalog.testing.layers import PGCATALOG_INTEGRATION_TESTING
from pytest_plone import fixtures_factory


globals().update(
    fixtures_factory(
        (
            (PGCATALOG_INTEGRATION_TESTING, "integration"),
            (PGCATALOG_FUNCTIONAL_TESTING, "functional"),
            (PGCATALOG_ACCEPTANCE_TESTING, "acceptance"),
        )
    )
)
