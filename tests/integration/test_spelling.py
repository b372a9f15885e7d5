"""Suggestions and corrections are spelled as in the texts that the user may see."""

from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.web import Site
from typing import Any

import pytest
import transaction


TEXTS = [
    "Directories hold more files. Files have names, but other files have none. Directories end.",
    "Copying Directories",
    "Man öffnet eine Datei im Verzeichnis. Datei und Verzeichnis liegen auf der Platte.",
    "Es liegt an der Straße nach Zürich; die Straße ist lang",
    "of the PostgreSQL server, behind a POSIX system",
    "şehir ve İstanbul, ve ığdır ile Isparta",
    "Überall sind Bäume",
]


def fill(portal: Any) -> None:
    add_users(portal)
    for number, text in enumerate(TEXTS):
        publish(create(portal, "Document", f"p{number}", title=text))
    create(portal, "Document", "hidden", title="only at POSTGRESQL, or of POSTGRESQL, or in POSTGRESQL, mit zwei DATEI")


SHARED = fill


@pytest.fixture
def words(shared_site: Site, shared_filled: Any) -> Any:
    """The catalog of a site with texts whose words are counted."""
    counted(shared_site.dsn, shared_filled.portal_catalog)
    return shared_filled.portal_catalog


SPELLED = [
    ("dat", "Datei"),
    ("DATE", "Datei"),
    ("verz", "Verzeichnis"),
    ("file", "files"),
    ("postg", "PostgreSQL"),
    ("posi", "POSIX"),
    ("direct", "directories"),
    ("zür", "Zürich"),
    ("zur", "Zürich"),
    ("stras", "Straße"),
    ("istan", "İstanbul"),
    ("igd", "ığdır"),
    ("ispar", "Isparta"),
    ("baum", "Bäume"),
    ("überal", "uberall"),
]


@pytest.mark.parametrize(("typed", "suggested"), SPELLED)
def test_suggestion_is_spelled_as_inside_of_sentences(words: Any, typed: str, suggested: str) -> None:
    with acting_as(words.aq_parent, None):
        assert words.suggest(typed) == [suggested]
        assert len(words(SearchableText=suggested)) == len(words(SearchableText=suggested.lower())) > 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("dateii", "Datei"),
        ("fiels", "files"),
        ("postgersql", "PostgreSQL"),
        ("Postgersql", "PostgreSQL"),
        ("zürihc", "Zürich"),
        ("strsase", "Straße"),
        ("direktories", "directories"),
        ("istanbull", "İstanbul"),
    ],
)
def test_correction_is_spelled_as_inside_of_sentences(words: Any, typed: str, meant: str) -> None:
    with acting_as(words.aq_parent, None):
        assert words.did_you_mean(typed) == meant


def test_hidden_spelling_is_not_shown(words: Any) -> None:
    with acting_as(words.aq_parent, None):
        assert words.suggest("postg") == ["PostgreSQL"]
    assert words.suggest("postg", getId="hidden") == ["POSTGRESQL"]


def test_spellings_take_no_further_message(words: Any) -> None:
    transaction.begin()
    result_cache().clear()
    len(words(getId="p0"))
    with traced(words.aq_parent) as traffic:
        words.suggest("dat")
    assert traffic[0].round_trips == 1, traffic[0].statements
