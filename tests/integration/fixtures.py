"""Fixtures with a real Plone site on zodb-pgjsonb."""

from collections.abc import Callable
from collections.abc import Iterator
from functools import cache
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration import site as sites
from tests.integration.web import Site
from typing import Any
from typing import Protocol

import itertools
import pytest
import transaction


PROFILE = "plone.pgcatalog:default"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def zope() -> None:
    """Zope and Plone, loaded into the test process."""
    sites.start_zope()


@pytest.fixture(scope="session")
def stock_template(zope: None, postgres: EmbeddedPostgres) -> str:
    """Name of a database with a Plone site and its ZCatalog."""
    dsn = postgres.createdb(sites.STOCK_TEMPLATE)
    sites.create_site(dsn)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        # A first version of each new object would take an eighth of the time of all tests.
        portal.portal_repository.manage_setTypePolicies({})
        transaction.commit()
    return sites.STOCK_TEMPLATE


@pytest.fixture(scope="session")
def site_template(stock_template: str, postgres: EmbeddedPostgres) -> str:
    """Name of a database with a Plone site and our catalog."""
    dsn = postgres.createdb(sites.TEMPLATE, template=stock_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.portal_setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")
        transaction.commit()
    return sites.TEMPLATE


class SiteWith(Protocol):
    """Function that returns the DSN of a fresh site, filled by *fill*, with our catalog or, if *stock*, ZCatalog."""

    def __call__(self, fill: Callable[[Any], Any], stock: bool = False) -> str: ...


@pytest.fixture(scope="session")
def site_with(stock_template: str, site_template: str, postgres: EmbeddedPostgres) -> SiteWith:
    """Builds each filled site once and copies it for each test, which takes a fraction of the time."""

    @cache
    def template(fill: Callable[[Any], Any], base: str) -> str:
        if fill is no_content:
            return base
        name = f"plone_with_{next(_numbers)}"
        with sites.opened(postgres.createdb(name, template=base)) as db, sites.inside(db) as portal:
            fill(portal)
            transaction.commit()
        return name

    def site(fill: Callable[[Any], Any], stock: bool = False) -> str:
        return sites.clone(postgres, template(fill, stock_template if stock else site_template))

    return site


@pytest.fixture(scope="session")
def two_sites_template(site_template: str, postgres: EmbeddedPostgres) -> str:
    """Name of a database with the sites ``plone`` and ``second``, both with our catalog and the same content."""
    from tests.integration.two_sites import make_two_sites

    make_two_sites(postgres.createdb("plone_two_sites", template=site_template))
    return "plone_two_sites"


def content_of(request: pytest.FixtureRequest, name: str = "CONTENT") -> Callable[[Any], Any]:
    """Return the function *name* of the test's module, which fills a portal; ``no_content`` if there is none."""
    return getattr(request.module, name, no_content)


def no_content(portal: Any) -> None:
    """Leave *portal* as it is."""


@pytest.fixture(scope="module")
def shared_site(site_with: SiteWith, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site with our catalog and the module's SHARED content, accessed over HTTP and directly."""
    with sites.opened(site_with(content_of(request, "SHARED"))) as db:
        yield Site(db)


@pytest.fixture(scope="module")
def shared_portal(shared_site: Site) -> Iterator[Any]:
    """The portal of the shared site, for tests whose changes are undone."""
    with sites.inside(shared_site.db) as portal:
        yield portal


@pytest.fixture
def shared_filled(shared_portal: Any) -> Iterator[Any]:
    """The portal of the shared site, for a manager in a new transaction, whatever other tests did; it is aborted."""
    sites.return_to(shared_portal)
    transaction.begin()
    yield shared_portal
    transaction.abort()


@pytest.fixture(scope="module")
def shared_both(shared_portal: Any) -> Any:
    """(our catalog, the oracle) of the shared site."""
    from tests.integration.oracle import make_oracle

    return shared_portal.portal_catalog, make_oracle(shared_portal)


@pytest.fixture
def both(shared_both: Any) -> Any:
    """(our catalog, the oracle) of the shared site, for a manager."""
    sites.return_to(shared_both[0].aq_parent)
    return shared_both


@pytest.fixture
def compared(both: Any) -> Any:
    """(our catalog, the oracle, the portal) of the shared site."""
    return *both, both[0].aq_parent


@pytest.fixture
def stock_dsn(site_with: SiteWith, request: pytest.FixtureRequest) -> str:
    """DSN of a fresh stock site with the module's CONTENT."""
    return site_with(content_of(request), stock=True)


@pytest.fixture
def dsn(site_with: SiteWith, request: pytest.FixtureRequest) -> str:
    """DSN of a fresh site with our catalog and the module's CONTENT."""
    return site_with(content_of(request))


@pytest.fixture
def db(dsn: str) -> Iterator[Any]:
    """A ZODB.DB on the database of ``dsn``."""
    with sites.opened(dsn) as database:
        yield database


@pytest.fixture
def app(db: Any) -> Iterator[Any]:
    """The Zope application, logged in as admin."""
    with sites.inside(db) as portal:
        yield portal.getPhysicalRoot()


@pytest.fixture
def portal(app: Any) -> Any:
    """The Plone site with our catalog."""
    return app.plone


@pytest.fixture
def filled(portal: Any) -> Any:
    """The site, filled by its module, in a new transaction."""
    transaction.begin()
    return portal


@pytest.fixture
def catalog(portal: Any) -> Any:
    """Our catalog tool."""
    return portal.portal_catalog
