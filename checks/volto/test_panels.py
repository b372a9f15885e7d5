"""Our three control panels in Volto: each saves, and shows a refused value's error beside the field."""

from checks.volto import looks
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import manager
from checks.volto.visitors import SIZES
from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from tests.acceptance.browser import fits

import pytest


#: panel -> (field, an accepted value, a refused one)
PANELS = {
    "pgcatalog": ("slow_query_ms", "25.5", "-3"),
    "pgcatalog-search": ("synonyms", "climate, weather\nhedgehog, igel", "climate's"),
    "pgcatalog-search-page": ("count_limit", "300", "-1"),
}


@pytest.fixture
def page(browser: Browser, front_ends: FrontEnds, size: str) -> Iterator[Page]:
    with manager(browser, front_ends.ours, **SIZES[size] or {"height": 1250}) as page:
        yield page


@pytest.mark.parametrize("panel", PANELS)
def test_panel_saves_valid_and_refuses_invalid_values(
    page: Page, front_ends: FrontEnds, tmp_path: Path, panel: str, size: str
) -> None:
    address = f"{front_ends.ours}/controlpanel/{panel}"
    name, right, wrong = PANELS[panel]
    field = page.locator(f"#field-{name}")
    looks.save_panel(page, address, **{name: right})
    expect(page.locator(".Toastify__toast").first).to_contain_text("Changes saved")
    page.screenshot(path=tmp_path / f"volto-{panel}{size}.png")
    assert fits(page)

    looks.save_panel(page, address, **{name: wrong})
    beside = page.locator(f".field-wrapper-{name} .form-error-label")
    expect(beside.first).to_be_visible()
    if panel == "pgcatalog-search":
        expect(beside).to_contain_text('Line 1: "climate\'s" is not of the form')
    if size:
        field.scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / f"volto-{panel}-refused{size}.png")
    looks.go(page, address)
    expect(field).to_have_value(right)


def test_text_of_scans_is_a_setting(page: Page, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.ours}/controlpanel/pgcatalog")
    expect(page.locator(".field-wrapper-text_of_scans input[type=checkbox]")).not_to_be_checked()


def test_the_panels_are_listed(page: Page, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.ours}/controlpanel")
    for panel in PANELS:
        expect(page.locator(f"a[href$='/controlpanel/{panel}']")).to_be_visible()
