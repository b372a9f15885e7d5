"""Fixtures for the acceptance tests."""

from tests.acceptance.axe import axe  # noqa: F401
from tests.acceptance.browser import browser  # noqa: F401
from tests.acceptance.browser import page  # noqa: F401
