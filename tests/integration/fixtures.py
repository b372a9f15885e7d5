"""Fixtures with a real Plone site on zodb-pgjsonb."""

from collections.abc import Iterator
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from tests.integration import site as sites
from typing import Any

import pytest
import transaction


PROFILE = "plone.pgcatalog:default"


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
def catalog(portal: Any) -> Any:
    """Our catalog tool."""
    return portal.portal_catalog
