"""The system's Chromium, and a manager who has logged in."""

from collections.abc import Iterator
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from playwright.sync_api import sync_playwright
from typing import Any

import pytest
import shutil


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
#: Longest wait for a page or an element, in milliseconds.
PATIENCE = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Chromium's sandbox does not run for root, nor where a container has no user namespaces.
    options: Any = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of a browser in which the manager has logged in."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page = context.new_page()
        page.goto(f"{address}/login")
        page.fill("input[name=__ac_name]", "boss")
        page.fill("input[name=__ac_password]", "secret")
        page.locator("input[name=__ac_password]").press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        yield page
