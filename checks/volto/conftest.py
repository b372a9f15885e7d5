"""The front-ends under test: with our catalog, the same without the add-on, with a ZCatalog, and in German."""

from checks.volto import german as german_site
from checks.volto.content import fill
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import SIZES
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from scripts import volto
from tests.acceptance.browser import browser  # noqa: F401
from tests.acceptance.browser import CHROMIUM
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.fixtures import SiteWith
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
        with sites.inside(ours) as portal:
            counted(dsn, portal.portal_catalog)
        stock = stack.enter_context(sites.opened(site_with(fill, stock=True)))
        our_site, stock_site = (stack.enter_context(served(db)) for db in (ours, stock))
        yield FrontEnds(
            front_end("ours", our_site),
            front_end("without", our_site, RAZZLE_PGCATALOG="off"),
            front_end("zcatalog", stock_site),
        )


@pytest.fixture(scope="module", params=["", "/de"], ids=["one-language", "languages"])
def german(built: None, site_with: SiteWith, tmp_path_factory: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of the German part of the front-end of a site with our catalog: the site, or its folder for German."""
    log: Path = tmp_path_factory.mktemp("volto-german") / "german.log"
    dsn = site_with(german_site.fill_with_languages if request.param else german_site.fill)
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            counted(dsn, portal.portal_catalog)
        environment = {"RAZZLE_MULTILINGUAL": "on" if request.param else "off"}
        with served(db) as site, volto.served(site, free_port(), log, **environment) as address:
            yield address + request.param
