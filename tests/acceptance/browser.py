"""The system's Chromium, a site served to it, and a logged-in manager."""

from collections.abc import Iterator
from contextlib import contextmanager
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from playwright.sync_api import sync_playwright
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from tests.integration.content import counted
from tests.integration.waiting import background_ended
from tests.integration.web import application
from tests.integration.web import Site
from typing import Any
from waitress import wasyncore
from waitress.server import create_server

import pytest
import re
import shutil
import threading


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
#: Longest wait for a page or an element, in milliseconds.
PATIENCE = 120_000
#: Marks of a module with browser tests.
BROWSER_TESTS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=f"no browser: none of {', '.join(BROWSERS)} is installed"),
]


@contextmanager
def served(db: Any, site: str = "plone") -> Iterator[str]:
    """Yield the address of a *site* in *db*, served over HTTP; wait for its background threads at the end."""
    server = create_server(application(db), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        # Not by the IP address: Plone applies no theme to pages of the host 127.0.0.1.
        yield f"http://localhost:{server.effective_port}/{site}"
    finally:
        server.task_dispatcher.shutdown()
        # In the thread that waits for the sockets: closing them in another thread makes its wait fail.
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        thread.join(PATIENCE / 1000)
        assert not thread.is_alive()
        assert background_ended()
        assert recorder.flush(30)
        assert searches.flush(30)


def opened(browser: Browser, width: int = 1280, height: int = 900, **options: Any) -> Any:
    """Return a browser context with long timeouts, in English unless *options* set another language."""
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": width, "height": height}, **{"locale": "en-US", **options})
    context.set_default_timeout(PATIENCE)
    return context


def fits(page: Page) -> bool:
    """Return whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def found(page: Page, number: int) -> None:
    """Wait until the search page has *number* hits."""
    expect(page.locator("#search-results-number")).to_have_text(str(number))


def unfold(page: Page) -> None:
    """On a small screen, show the facets, and wait until all of them are there."""
    page.get_by_role("button", name="Filter the results").click()
    expect(page.locator("#search-filters")).to_have_class(re.compile(r"\bshow\b"))


@contextmanager
def visiting(browser: Browser, **options: Any) -> Iterator[Page]:
    """Yield a browser page without a login; *options* are those of ``opened``."""
    with opened(browser, **options) as context:
        yield context.new_page()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Chromium's sandbox does not run for root, nor in a container without user namespaces.
    options: Any = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as browser:
        yield browser


@pytest.fixture(scope="module")
def address(shared_site: Site) -> Iterator[str]:
    """Address of the module's shared site, whose words are counted, served over HTTP."""
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
    with served(shared_site.db) as url:
        yield url


@contextmanager
def managed(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """Yield a browser page logged in as manager; *options* are those of ``opened``."""
    with visiting(browser, **options) as page:
        page.goto(f"{address}/login")
        page.fill("input[name=__ac_name]", "boss")
        page.fill("input[name=__ac_password]", "secret")
        page.locator("input[name=__ac_password]").press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        yield page


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A browser page logged in as manager."""
    with managed(browser, address) as page:
        yield page


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    """A browser page without a login."""
    with visiting(browser) as page:
        yield page
