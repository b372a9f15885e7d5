"""Replay of the most frequent searches with other settings: figures, permissions and bounds."""

from AccessControl import getSecurityManager
from collections.abc import Iterator
from plone.pgcatalog.discovery.replay import FIRST
from plone.pgcatalog.discovery.replay import MOST_REPLAYED
from plone.pgcatalog.discovery.replay import Replay
from plone.pgcatalog.discovery.replay import replay
from plone.pgcatalog.discovery.replay import visitors_query
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.search_lists import SearchCount
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.tuning_panel import PANEL
from tests.integration.tuning_panel import sent
from tests.integration.web import Site
from typing import Any

import pytest
import re
import transaction


WORDS = ("owl", "mouse", "owl mouse", "the owl", "stork", "nothing at all")
COUNTED = [SearchCount(words, 9 - place, 0) for place, words in enumerate(WORDS)]


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """(portal, Web): public and private pages about owls and mice, and counted searches."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        for number in range(8):
            animals = "owl " * (number % 4) + "mouse " * (number // 4)
            page = create(portal, "Document", f"p{number}", title=f"Page {number}", description=animals)
            if number != 7:
                publish(page)
        transaction.commit()
        for search in COUNTED:
            for _ in range(search.searches):
                searches.record(shared_site.dsn, portal.portal_catalog._core.zoid, search.words, True)
        assert searches.flush(30)
        transaction.begin()
        yield portal, shared_site.web


@pytest.fixture
def portal(site: Any) -> Iterator[Any]:
    with sites.rolled_back(site[0]) as portal:
        yield portal


def replayed(portal: Any, **settings: Any) -> Replay:
    return replay(portal, portal.REQUEST, COUNTED, settings)


def found(portal: Any, words: str) -> tuple[list[str], int]:
    """Return the ids of the first hits of a visitor, and the number of all hits."""
    with acting_as(portal, None):
        results = portal.portal_catalog(**visitors_query(portal, portal.REQUEST, words))
        return [brain.getId for brain in results[:FIRST]], len(results)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pins": "owl = /p4\nthe owl = /p7"},
        {"pins": "owl => -/p3", "synonyms": "stork, mouse"},
        {"hidden_pages": "/p1\n/p5", "weight_description": 9.0},
        {"half_lives": "Document = 1 day", "stop_words": "en: owl"},
    ],
)
def test_figures_are_those_of_searches_before_and_after_saving(portal: Any, settings: dict[str, Any]) -> None:
    before = [found(portal, words) for words in WORDS]
    user = getSecurityManager().getUser().getId()
    compared = replayed(portal, **settings)
    assert getSecurityManager().getUser().getId() == user
    tune(**settings)
    after = [found(portal, words) for words in WORDS]
    pairs = list(zip(before, after, strict=True))
    assert compared.figures() == {
        "searches": len(WORDS),
        "first": sum(old[0][:1] != new[0][:1] for old, new in pairs),
        "five": sum(old[0] != new[0] for old, new in pairs),
        "total": sum(old[1] != new[1] for old, new in pairs),
    }
    assert [(s.before.total, s.after.total) for s in compared.searches] == [(old[1], new[1]) for old, new in pairs]
    assert [search.counted.words for search in compared.changed] == [
        words for words, (old, new) in zip(WORDS, pairs, strict=True) if old != new
    ]
    assert compared.left == 0


def test_replay_is_bounded(portal: Any) -> None:
    many = [SearchCount(f"owl {number}", 1, 0) for number in range(3 * MOST_REPLAYED)]
    result_cache().clear()
    with traced(portal) as traffic:
        assert len(replay(portal, portal.REQUEST, many, {"pins": "owl = /p4"}, 600).searches) == MOST_REPLAYED
    assert len(traffic[0].matching("pgcatalog")) <= 2 * MOST_REPLAYED + 2
    assert replay(portal, portal.REQUEST, many, {}, 0) == Replay((), MOST_REPLAYED)


def test_panel_compares_by_post_only_and_saves_nothing(site: Any) -> None:
    portal, web = site
    login, form = "boss:secret", sent(pins="owl = /p4\nstork = /p7")
    page = web.post(PANEL, login, **form, compare="1").text
    listed = re.sub(r"<[^>]+>|\s+", " ", page.partition('id="compared"')[2].partition("</ul>")[0])
    assert re.findall(r"(\w+) *: *(\d+)", listed) == [("searches", "6"), ("hit", "2"), ("hits", "2"), ("hits", "2")]
    changed = page.partition('id="changed-searches"')[2].partition("</table>")[0]
    assert re.findall(r'name="try_for"[^>]*value="([^"]+)"', changed) == ["owl", "the owl"]
    transaction.begin()
    assert not found(portal, "stork")[0]
    assert 'id="compared"' not in web.get(PANEL, login, "text/html", compare="1").text
    assert 'id="compared"' not in web.post(PANEL, login, **sent(pins="nonsense"), compare="1").text
