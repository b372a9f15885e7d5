"""More like this: pages that share the characteristic words of a text, permissions, and costs."""

from plone.app.textfield import RichTextValue
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.traffic import traced
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


def fill(portal: Any) -> None:
    add_users(portal)
    for name, value in TEXTS.items():
        page = create(portal, "Document", name, title=name, text=text(value))
        if name != "secret":
            publish(page)
    old = create(portal, "Document", "old", title="Old", text=text("Of an owl in an engine"))
    publish(old)
    old.setExpirationDate(PAST)
    old.reindexObject()


SHARED = fill


@pytest.fixture
def texts(shared_filled: Any) -> Any:
    """The catalog of a site with texts on two subjects."""
    return shared_filled.portal_catalog


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results]


def test_page_sharing_more_words_comes_first_and_the_page_itself_never(texts: Any, shared_filled: Any) -> None:
    found = ids(texts.more_like_this(shared_filled.owls))
    assert found[:2] in (["secret", "mice"], ["mice", "secret"])
    assert "owls" not in found
    assert set(found[:2]).isdisjoint({"cars", "oil"})
    assert ids(texts.more_like_this(shared_filled.cars))[0] == "oil"
    # A text of a name only has no similar ones.
    assert ids(texts.more_like_this(shared_filled.empty)) == []


def test_a_brain_an_object_and_a_uid_are_the_same(texts: Any, shared_filled: Any) -> None:
    [brain] = texts(getId="owls")
    found = ids(texts.more_like_this(shared_filled.owls))
    assert ids(texts.more_like_this(brain)) == ids(texts.more_like_this(brain.UID)) == found


def test_more_criteria_and_a_limit(texts: Any, shared_filled: Any) -> None:
    owls = shared_filled.owls
    assert len(texts.more_like_this(owls, limit=1)) == 1
    assert ids(texts.more_like_this(owls, getId="cats")) == ["cats"]
    assert ids(texts.more_like_this(owls, portal_type="Event")) == []
    assert "mice" not in ids(texts.more_like_this(owls, where=Not(Eq("getId", "mice"))))
    by_name = ids(texts.more_like_this(owls, sort_on="getId"))
    assert by_name == sorted(by_name)


def test_missing_page_has_no_similar_ones(texts: Any) -> None:
    for what in ("no such uid", "", "\x00", "\ud800", "x" * 10_000):
        assert len(texts.more_like_this(what)) == 0
    with pytest.raises(TypeError, match="a brain, an object or a UID"):
        texts.more_like_this(None)


def test_similar_pages_are_visible_to_the_user(texts: Any, shared_filled: Any) -> None:
    [uid] = [brain.UID for brain in texts(getId="secret")]
    owls = shared_filled.owls
    with acting_as(shared_filled, None):
        assert "secret" not in ids(texts.more_like_this(owls))
        # The words of a private text do not show in results for it, either.
        assert ids(texts.more_like_this(uid)) == ids(texts.more_like_this(shared_filled.secret)) == []
        assert "secret" not in ids(texts.more_like_this(owls, allowedRolesAndUsers=["Manager"]))
        with pytest.raises(QueryError):
            texts.more_like_this(owls, where=Eq("allowedRolesAndUsers", "Manager"))
        # An expired page has similar ones, but is none.
        assert {"owls", "oil"} <= set(ids(texts.more_like_this(shared_filled.old)))
        assert "old" not in ids(texts.more_like_this(owls))


def test_similar_pages_take_two_statements(texts: Any, shared_filled: Any) -> None:
    result_cache().clear(HITS)
    len(texts(getId="owls"))
    with traced(shared_filled) as traffic:
        assert [brain.Title for brain in texts.more_like_this(shared_filled.owls)]
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
