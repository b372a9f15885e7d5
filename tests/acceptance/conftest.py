"""Fixtures for the acceptance tests."""

from tests.acceptance.axe import axe  # noqa: F401
from tests.acceptance.browser import address  # noqa: F401
from tests.acceptance.browser import browser  # noqa: F401
from tests.acceptance.browser import page  # noqa: F401
from tests.acceptance.browser import visitor  # noqa: F401


# The suite of an add-on, which runs in a process of its own.
collect_ignore = ["example_addon"]
