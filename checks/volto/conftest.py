"""The front-ends under test: with our catalog, the same without the add-on, with a ZCatalog, and in German."""

from checks.volto import german as german_site_of
from checks.volto.content import fill
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import SIZES
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.queue.worker import Worker
from scripts import volto
from tests.acceptance.axe import axe  # noqa: F401
from tests.acceptance.browser import browser  # noqa: F401
from tests.acceptance.browser import CHROMIUM
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import tune
from tests.integration.fixtures import SiteWith
from tests.integration.uploads import work
from tests.integration.web import Site
from typing import Any

import pytest
import socket


#: The fixtures of a site and its server: pytest itself finds them for modules in ``tests`` only.
pytest_plugins = ["tests.conftest"]


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """The build of the front-end; skips if it cannot be built or shown."""
    if reason := volto.lacking() or ("no browser is installed" if CHROMIUM is None else None):
        pytest.skip(reason)
    volto.build()


@pytest.fixture(params=SIZES, ids=lambda size: size.strip("-") or "desktop")
def size(request: pytest.FixtureRequest) -> str:
    """A key of SIZES."""
    return str(request.param)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def front_ends(built: None, site_with: SiteWith, tmp_path_factory: Any) -> Iterator[FrontEnds]:
    logs = tmp_path_factory.mktemp("volto")
    with ExitStack() as stack:

        def front_end(name: str, site: str, **environment: str) -> str:
            log: Path = logs / f"{name}.log"
            return stack.enter_context(volto.served(site, free_port(), log, **environment))

        dsn = site_with(fill)
        ours = stack.enter_context(sites.opened(dsn))
        with Site(ours).inside() as portal:
            counted(dsn, portal.portal_catalog)
            tune(pins="slugs = /page-05")
        work(Worker(ours, dsn))
        stock = stack.enter_context(sites.opened(site_with(fill, stock=True)))
        our_site, stock_site = (stack.enter_context(served(db)) for db in (ours, stock))
        yield FrontEnds(
            front_end("ours", our_site),
            front_end("search_page", our_site, RAZZLE_SEARCH_PAGE="on"),
            front_end("without", our_site, RAZZLE_PGCATALOG="off"),
            front_end("zcatalog", stock_site),
            our_site,
        )


@pytest.fixture(scope="session", params=["", "/de"], ids=["one-language", "languages"])
def german_site(built: None, site_with: SiteWith, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Address of a site in German with our catalog, and the path of its German part: "", or its folder for German."""
    dsn = site_with(german_site_of.fill_with_languages if request.param else german_site_of.fill)
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            counted(dsn, portal.portal_catalog)
        with served(db) as site:
            yield site, request.param


@pytest.fixture(scope="module", params=["off"])
def german(german_site: tuple[str, str], tmp_path_factory: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of the German part of the front-end of that site; a parameter "on" is for the search page of the add-on."""
    log: Path = tmp_path_factory.mktemp("volto-german") / "german.log"
    site, path = german_site
    environment = {"RAZZLE_MULTILINGUAL": "on" if path else "off", "RAZZLE_SEARCH_PAGE": request.param}
    with volto.served(site, free_port(), log, **environment) as address:
        yield address + path
