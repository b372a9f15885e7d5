"""The visitors of Volto: a browser without a log-in, and a manager's."""

from checks.volto.content import MANAGER
from checks.volto.content import PASSWORD
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from playwright.sync_api import Browser
from playwright.sync_api import Page
from tests.acceptance.browser import opened
from typing import Any


#: Suffix of screenshots' names -> size of the browser.
SIZES: dict[str, dict[str, int]] = {"": {}, "-small": {"width": 375, "height": 740}}


@dataclass(frozen=True)
class FrontEnds:
    """The addresses of the front-ends."""

    ours: str
    #: the first one with the search page of the add-on
    search_page: str
    without_add_on: str
    zcatalog: str
    #: Classic UI of the site of the first one
    classic: str


@contextmanager
def visitor(browser: Browser, **options: Any) -> Iterator[Page]:
    with opened(browser, **options) as context:
        yield context.new_page()


@contextmanager
def manager(browser: Browser, front_end: str, **options: Any) -> Iterator[Page]:
    """Yield a page of a browser in which the manager has logged in at *front_end*."""
    with visitor(browser, **options) as page:
        page.goto(f"{front_end}/login")
        page.fill("#login", MANAGER)
        page.fill("#password", PASSWORD)
        page.click("#login-form-submit")
        page.wait_for_url(lambda url: "login" not in url)
        yield page
