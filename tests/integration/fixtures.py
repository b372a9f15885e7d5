"""Fixtures with a real Plone site on zodb-pgjsonb."""

from collections.abc import Callable
from collections.abc import Iterator
from functools import cache
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration import site as sites
from typing import Any
from typing import Protocol

import itertools
import pytest
import transaction


PROFILE = "plone.pgcatalog:default"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def zope() -> None:
    """Zope and Plone loaded into the test process."""
    sites.start_zope()


@pytest.fixture(scope="session")
def stock_template(zope: None, postgres: EmbeddedPostgres) -> str:
    """Name of a database with a Plone site and its ZCatalog."""
    sites.create_site(postgres.createdb(sites.STOCK_TEMPLATE))
    return sites.STOCK_TEMPLATE


@pytest.fixture(scope="session")
def site_template(stock_template: str, postgres: EmbeddedPostgres) -> str:
    """Name of a database with a Plone site and our catalog."""
    from zope.component.hooks import setSite

    dsn = postgres.createdb(sites.TEMPLATE, template=stock_template)
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        app.plone.portal_setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")
        transaction.commit()
    return sites.TEMPLATE


class SiteWith(Protocol):
    """For a function that fills a portal, returns the DSN of a fresh site filled so: with our catalog, or *stock*."""

    def __call__(self, fill: Callable[[Any], Any], stock: bool = False) -> str: ...


@pytest.fixture(scope="session")
def site_with(stock_template: str, site_template: str, postgres: EmbeddedPostgres) -> SiteWith:
    """What is filled is made once, and copied for each test, which takes a fraction of the time."""

    @cache
    def template(fill: Callable[[Any], Any], base: str) -> str:
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


@pytest.fixture(scope="module")
def peopled(site_template: str, postgres: EmbeddedPostgres) -> Iterator[Any]:
    """A site with our catalog, content and users, for the tests of a module that change nothing that stays."""
    from tests.integration.content import populate
    from tests.integration.people import add_users
    from tests.integration.people import make_content
    from zope.component.hooks import setSite

    with sites.opened(sites.clone(postgres, site_template)) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        populate(app.plone)
        add_users(app.plone)
        make_content(app.plone)
        transaction.commit()
        yield app.plone


@pytest.fixture
def stock_dsn(stock_template: str, postgres: EmbeddedPostgres) -> str:
    """DSN of a fresh copy of the stock site."""
    return sites.clone(postgres, stock_template)


@pytest.fixture
def dsn(site_template: str, postgres: EmbeddedPostgres) -> str:
    """DSN of a fresh copy of the site with our catalog."""
    return sites.clone(postgres, site_template)


@pytest.fixture
def db(dsn: str) -> Iterator[Any]:
    """A ZODB.DB on that copy."""
    with sites.opened(dsn) as database:
        yield database


@pytest.fixture
def app(db: Any) -> Iterator[Any]:
    """The Zope application, logged in as admin."""
    from zope.component.hooks import setSite

    with sites.application(db) as application:
        sites.login(application)
        setSite(application.plone)
        yield application


@pytest.fixture
def portal(app: Any) -> Any:
    """The Plone site with our catalog."""
    return app.plone


@pytest.fixture
def filled(portal: Any) -> Any:
    """The site, as a module has filled it, in a new transaction."""
    transaction.begin()
    return portal


@pytest.fixture
def catalog(portal: Any) -> Any:
    """Our catalog tool."""
    return portal.portal_catalog
