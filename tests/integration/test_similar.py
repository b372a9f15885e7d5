"""More like this: pages that share the characteristic words of a text, permissions, and costs."""

from collections.abc import Iterator
from plone.app.textfield import RichTextValue
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.web import Site
from typing import Any

import pytest
import transaction


TEXTS = {
    "owls": "The owl hunts at night. Owls eat mice, and an owl hears well.",
    "mice": "Mice fear the owl at night; a mouse hides from owls.",
    "cats": "Cats hunt mice, and sleep at noon.",
    "cars": "The engine of a car wants oil, and a car wants a driver.",
    "oil": "Oil is what an engine wants.",
    "empty": "",
    "secret": "The owl is a spy. Owls spy on mice.",
}


def text(value: str) -> Any:
    return RichTextValue(f"<p>{value}</p>", "text/html", "text/html")


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """(catalog, portal) with texts on two subjects; the tests leave no change."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        for name, value in TEXTS.items():
            page = create(portal, "Document", name, title=name, text=text(value))
            if name != "secret":
                publish(page)
        old = create(portal, "Document", "old", title="Old", text=text("Of an owl in an engine"))
        publish(old)
        old.setExpirationDate(PAST)
        old.reindexObject()
        transaction.commit()
        yield portal.portal_catalog, portal


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results]


def test_page_sharing_more_words_comes_first_and_the_page_itself_never(site: Any) -> None:
    catalog, portal = site
    found = ids(catalog.more_like_this(portal.owls))
    assert found[:2] in (["secret", "mice"], ["mice", "secret"])
    assert "owls" not in found
    assert set(found[:2]).isdisjoint({"cars", "oil"})
    assert ids(catalog.more_like_this(portal.cars))[0] == "oil"


def test_a_brain_an_object_and_a_uid_are_the_same(site: Any) -> None:
    catalog, portal = site
    [brain] = catalog(getId="owls")
    found = ids(catalog.more_like_this(portal.owls))
    assert ids(catalog.more_like_this(brain)) == found
    assert ids(catalog.more_like_this(brain.UID)) == found


def test_more_criteria_and_a_limit(site: Any) -> None:
    catalog, portal = site
    assert len(catalog.more_like_this(portal.owls, limit=1)) == 1
    assert ids(catalog.more_like_this(portal.owls, getId="cats")) == ["cats"]
    assert ids(catalog.more_like_this(portal.owls, portal_type="Event")) == []
    assert "mice" not in ids(catalog.more_like_this(portal.owls, where=Not(Eq("getId", "mice"))))
    by_name = ids(catalog.more_like_this(portal.owls, sort_on="getId"))
    assert by_name == sorted(by_name)


def test_missing_page_has_no_similar_ones(site: Any) -> None:
    catalog, _ = site
    for what in ("no such uid", "", "\x00", "\ud800", "x" * 10_000):
        assert ids(catalog.more_like_this(what)) == []
    with pytest.raises(TypeError, match="a brain, an object or a UID"):
        catalog.more_like_this(None)
    assert len(catalog.more_like_this("no such uid")) == 0


def test_text_of_a_name_only_has_few_similar_pages(site: Any) -> None:
    catalog, portal = site
    assert ids(catalog.more_like_this(portal.empty)) == []


def test_similar_pages_are_visible_to_the_user(site: Any) -> None:
    catalog, portal = site
    [uid] = [brain.UID for brain in catalog(getId="secret")]
    with acting_as(portal, None):
        assert "secret" not in ids(catalog.more_like_this(portal.owls))
        # The words of a private text do not show in results for it, either.
        assert ids(catalog.more_like_this(uid)) == []
        assert ids(catalog.more_like_this(portal.secret)) == []
        assert "secret" not in ids(catalog.more_like_this(portal.owls, allowedRolesAndUsers=["Manager"]))
        with pytest.raises(QueryError):
            catalog.more_like_this(portal.owls, where=Eq("allowedRolesAndUsers", "Manager"))


def test_an_expired_page_has_similar_ones_but_is_none(site: Any) -> None:
    catalog, portal = site
    with acting_as(portal, None):
        assert {"owls", "oil"} <= set(ids(catalog.more_like_this(portal.old)))
        assert "old" not in ids(catalog.more_like_this(portal.owls))


def test_similar_pages_take_two_statements(site: Any) -> None:
    catalog, portal = site
    transaction.begin()
    result_cache().clear(HITS)
    len(catalog(getId="owls"))
    with traced(portal) as traffic:
        assert [brain.Title for brain in catalog.more_like_this(portal.owls)]
    assert traffic[0].round_trips == 2, traffic[0].statements


def test_rare_words_count_more_once_they_are_counted(portal: Any, catalog: Any, dsn: str) -> None:
    for number in range(8):
        create(portal, "Document", f"page{number}", title=f"page{number}", text=text("the same for all " * 3))
    create(portal, "Document", "one", title="one", text=text("the same for all, for all, and a zebra alone1"))
    create(portal, "Document", "two", title="two", text=text("a zebra alone2"))
    transaction.commit()
    assert len(catalog.more_like_this(portal.one, limit=20)) == 9
    counted(dsn, catalog)
    assert ids(catalog.more_like_this(portal.one))[0] == "two"
    # A word of one page alone is not searched for.
    assert ids(catalog.more_like_this(portal.two)) == ["one"]


def test_pending_changes_affect_similar_pages(portal: Any, catalog: Any) -> None:
    one = create(portal, "Document", "one", title="one", text=text("a zebra"))
    create(portal, "Document", "two", title="two", text=text("the zebra"))
    assert ids(catalog.more_like_this(one)) == ["two"]
    transaction.commit()
    assert ids(catalog.more_like_this(portal.one)) == ["two"]
    portal.two.text = text("lion")
    portal.two.reindexObject()
    assert ids(catalog.more_like_this(portal.one)) == []


def test_a_very_long_text_is_legal(portal: Any, catalog: Any) -> None:
    words = " ".join(f"word{number}" for number in range(30_000))
    create(portal, "Document", "long", title="long", text=text(words))
    create(portal, "Document", "short", title="short", text=text("word7 word8"))
    transaction.commit()
    assert ids(catalog.more_like_this(portal.short)) == ["long"]
    assert len(catalog.more_like_this(portal.long)) <= 1
