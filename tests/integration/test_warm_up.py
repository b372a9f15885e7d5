"""A process that starts reads at once what its first page would read object by object."""

from plone.pgcatalog.database.prefetch import warm_up
from tests.integration import site as sites
from tests.integration.storage import reads
from typing import Any
from zope.component.hooks import setSite

import pytest
import transaction


HTML = "<p>Some <b>text</b></p>"


def transformed(app: Any) -> str:
    """Return a text as a page shows it."""
    setSite(app.plone)
    return str(app.plone.portal_transforms.convertTo("text/x-html-safe", HTML, mimetype="text/html").getData())


def statements_for_a_text(db: Any) -> int:
    with sites.application(db) as app:
        jar = app._p_jar
        # What any first page needs.
        app.plone.portal_catalog  # noqa: B018
        before = reads(jar).statements
        assert "<b>text</b>" in transformed(app)
        return int(reads(jar).statements - before)


@pytest.fixture
def dsn(site_template: str, postgres: Any) -> str:
    return sites.clone(postgres, site_template)


def test_the_first_text_asks_a_few_times_instead_of_a_thousand(dsn: str) -> None:
    with sites.opened(dsn) as db:
        assert statements_for_a_text(db) > 1000
    with sites.opened(dsn) as db:
        warm_up(db)
        assert statements_for_a_text(db) < 50


def test_no_content_is_read(dsn: str) -> None:
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        app.plone.invokeFactory("Document", "page")
        transaction.commit()
    with sites.opened(dsn) as db:
        warm_up(db)
        with sites.application(db) as app:
            page = app.plone._getOb("page")
            before = reads(app._p_jar).statements
            assert page.id == "page"
            assert reads(app._p_jar).statements == before + 1


def test_a_site_without_the_tool_starts(dsn: str) -> None:
    with sites.opened(dsn) as db:
        with sites.application(db) as app:
            app.plone._delOb("portal_transforms")
            transaction.commit()
        warm_up(db)


def test_a_database_without_zope_starts(postgres: Any) -> None:
    with sites.opened(postgres.createdb("warm_up_empty")) as db:
        warm_up(db)


def test_an_error_of_the_database_does_not_stop_the_start(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("plone.pgcatalog.database.prefetch.PARTS", "SELECT no_such_column, %s, %s, %s")
    with sites.opened(dsn) as db:
        warm_up(db)
        with sites.application(db) as app:
            assert app.plone.Title()
    assert "Nothing was read ahead" in caplog.text
