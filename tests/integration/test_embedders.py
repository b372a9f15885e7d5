"""Faulty embedders: no vector is lost, no wrong vector is stored, and the reason is reported."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.distribution import numbers_of
from plone.pgcatalog.meaning import embedder as embedder_module
from plone.pgcatalog.meaning import table
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import EmbedderError
from plone.pgcatalog.meaning.job import Embedding
from plone.pgcatalog.queue import table as queue
from plone.pgcatalog.queue.kind import IJobKind
from tests.integration.content import create
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import sending
from tests.integration.embedders import serving
from tests.integration.embedders import vectors
from tests.integration.vectors import chunks
from tests.integration.vectors import current_vectors
from tests.integration.vectors import needs_pgvector
from tests.integration.vectors import set_embedder
from tests.integration.vectors import site as site
from tests.integration.vectors import work
from tests.integration.waiting import PATIENCE
from typing import Any
from zope.component import getUtility

import json
import pytest
import socket
import threading
import transaction


Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(autouse=True)
def no_connections() -> Iterator[None]:
    yield
    clear_embedder_state()


def embedding(values: str) -> Callable[[dict[str, Any]], Answer]:
    """Answer each text with the vector *values*, which may be invalid JSON."""
    item = '{"embedding": ' + values + "}"
    return lambda request: (200, {}, ('{"data": [' + ", ".join([item] * len(request["input"])) + "]}").encode())


def status(code: int, **headers: str) -> Callable[[dict[str, Any]], Answer]:
    return lambda request: (code, {name.replace("_", "-"): value for name, value in headers.items()}, b"no\0thing")


def index(text: str) -> Callable[[dict[str, Any]], Answer]:
    """Answer with one vector, whose index is the JSON *text*."""
    return lambda request: (200, {}, f'{{"data": [{{"index": {text}, "embedding": [1, 2]}}]}}'.encode())


#: JSON of all shapes except the right one.
SHAPES = [
    *(b"", b"null", b"1", b'"data"', b"{}", b"[[]]", b'{"data": null}', b'{"data": {}}', b'{"data": {"0": [1]}}'),
    *(b'{"data": "vectors"}', b'{"data": [null]}', b'{"data": [[1, 2]]}', b'{"data": [{}, {}]}', b"\xff\xfe{"),
]

#: Answer of an embedder -> error message.
HOSTILE = [
    (status(401), "returns 401"),
    (status(404), "returns 404"),
    (status(429, Retry_After="7"), "returns 429"),
    (status(429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"), "returns 429"),
    (status(429, Retry_After="nan"), "returns 429"),
    (status(503), "returns 503"),
    (status(302, Location="http://127.0.0.1:1/"), "a redirect, which is not followed"),
    (embedding("[NaN, 1]"), "NaN"),
    (embedding("[Infinity, 1]"), "NaN"),
    (embedding("[1e400, 1]"), "NaN"),
    (embedding("[0, 0]"), "zeros"),
    (embedding("[]"), "no vector"),
    (embedding("null"), "no vector"),
    (embedding('"AAAA"'), "no vector"),
    (embedding('["1", 2]'), "not a number"),
    (embedding("[true, 2]"), "not a number"),
    (embedding(str([1] * 20_000)), "no vector"),
    (lambda request: (200, {}, b"<html>"), "not JSON"),
    (lambda request: (200, {}, b"[" * 100_000), "not JSON"),
    (lambda request: (200, {}, b"[]"), "does not contain"),
    (lambda request: (200, {}, b'{"data": []}'), "does not contain"),
    (lambda request: (200, {}, json.dumps({"data": [{"index": 5, "embedding": [1]}]}).encode()), "no vector"),
    *((index(wrong), "not a number") for wrong in ("{}", "[]", '"0"', "null", "0.5", "[0]", "1e400", "NaN")),
    (index("1"), "no vector"),
    (index("1" * 5000), "not JSON"),
    *((lambda request, text=text: (200, {}, text), "does not contain|not JSON") for text in SHAPES),
    (lambda request: (200, {}, b" " * 2_000_000), "too long"),
    (lambda request: (200, {"Content-Length": "100", "Connection": "close"}, b"{}"), "RemoteProtocolError"),
]


@pytest.mark.parametrize(("answer", "reason"), HOSTILE)
def test_wrong_answer_raises_a_clear_error(answer: Any, reason: str) -> None:
    with serving(answer) as answers, pytest.raises(EmbedderError, match=reason) as raised:
        Embedder(answers.url, "test").embed_question("leave", 2)
    assert raised.value.is_down
    assert 1 <= raised.value.pause <= 3600


@pytest.mark.parametrize("code", [400, 413, 422])
def test_refused_text_has_no_effect_on_other_texts(code: int) -> None:
    with serving(status(code)) as answers, pytest.raises(EmbedderError) as raised:
        Embedder(answers.url, "test").embed_passages(["leave"])
    assert raised.value.is_about_text
    assert not raised.value.is_down


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80/v1", "ftp://127.0.0.1/", "file:/etc/passwd", "http://", "http://[", "//x"]
)
def test_only_http_addresses_are_requested(url: str) -> None:
    with pytest.raises(EmbedderError, match="does not begin"):
        Embedder(url, "test").embed_question("leave")


def test_vectors_of_different_dimensions_are_refused() -> None:
    sizes = iter([3, 3, 4])
    answer = lambda request: vectors(request, dimension=next(sizes))  # noqa: E731
    with serving(answer) as answers, pytest.raises(EmbedderError, match="different dimensions"):
        Embedder(answers.url, "test").embed_passages(["text"] * 3 * embedder_module.BATCH)


VALID = json.dumps({"data": [{"index": 0, "embedding": [1, 2]}]}).encode()
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(VALID)}\r\n".encode()


def dripping(end: threading.Event, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield *pieces* slowly: each within a per-read timeout, all together far beyond any limit."""
    for piece in pieces:
        end.wait(0.02)
        yield piece


def dripping_headers(end: threading.Event) -> Iterator[bytes]:
    yield HEAD
    yield from dripping(end, (f"X-{number}: 1\r\n".encode() for number in range(100)))
    yield b"\r\n" + VALID


def dripping_head(end: threading.Event) -> Iterator[bytes]:
    yield from dripping(end, (bytes([byte]) for byte in HEAD + b"\r\n"))
    yield VALID


def dripping_body(end: threading.Event) -> Iterator[bytes]:
    yield HEAD.replace(str(len(VALID)).encode(), str(len(VALID) + 100).encode()) + b"\r\n"
    yield from dripping(end, (b" " for _ in range(100)))
    yield VALID


def dripping_continue(end: threading.Event) -> Iterator[bytes]:
    yield from dripping(end, (b"HTTP/1.1 100 Continue\r\n\r\n" for _ in range(100)))
    yield HEAD + b"\r\n" + VALID


def silent(end: threading.Event) -> Iterator[bytes]:
    end.wait(PATIENCE)
    yield HEAD + b"\r\n" + VALID


@pytest.mark.parametrize("pieces", [dripping_headers, dripping_head, dripping_body, dripping_continue, silent])
def test_no_part_of_an_answer_is_waited_for_beyond_the_limit(pieces: Any) -> None:
    with sending(pieces) as url, pytest.raises(EmbedderError, match="no vectors after") as raised:
        Embedder(url, "test").embed_question("leave")
    assert raised.value.is_down


def test_resolver_that_blocks_is_not_waited_for_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    end, real = threading.Event(), socket.getaddrinfo

    def blocking(host: Any, *args: Any, **options: Any) -> Any:
        end.wait(PATIENCE)
        return real("127.0.0.1", *args, **options)

    with serving() as answers:
        monkeypatch.setattr(socket, "getaddrinfo", blocking)
        url = answers.url.replace("127.0.0.1", "embedder.example")
        try:
            # More of them than threads that resolve names.
            for _ in range(3):
                with pytest.raises(EmbedderError, match="no vectors after"):
                    Embedder(url, "test").embed_question("leave", 0.05)
        finally:
            end.set()
        assert answers.requests == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "SSL_CERT_FILE"])
def test_wrong_environment_counts_as_an_embedder_that_is_down(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    clear_embedder_state()
    monkeypatch.setenv(variable, "foo://nowhere:1")
    with serving() as answers, pytest.raises(EmbedderError) as raised:
        Embedder(answers.url.replace("127.0.0.1", "embedder.example"), "test").embed_question("leave")
    assert raised.value.is_down


def test_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "LONGEST_ANSWER", 1000)
    with serving(lambda request: (200, {}, b" " * 5000)) as answers, pytest.raises(EmbedderError, match="too long"):
        Embedder(answers.url, "test").embed_question("leave", 5)


def test_request_is_bounded_and_has_prefix_model_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCATALOG_EMBEDDER_KEY", "secret")
    with serving() as answers:
        embedder = Embedder(f"{answers.url}/", "e5-{kind}", "query:", "passage: ")
        embedder.embed_question("leave" * 10_000, 5)
        embedder.embed_passages(["leave", ""])
    question, texts = answers.requests
    assert (question["path"], question["model"], texts["model"]) == ("/v1/embeddings", "e5-query", "e5-passage")
    assert question["input"][0].startswith("query: leave")
    assert len(question["input"][0]) == embedder_module.LONGEST_TEXT
    assert texts["input"] == ["passage: leave", "passage:"]
    assert {headers["authorization"] for headers in answers.headers} == {"Bearer secret"}
    assert {headers["accept-encoding"] for headers in answers.headers} == {"identity"}


@pytest.fixture
def kind() -> Iterator[Any]:
    """The kind of jobs, whose pause is reset at the end."""
    kind = getUtility(IJobKind, name="embed")
    yield kind
    kind._paused_until = 0.0


def queued(dsn: str) -> list[Any]:
    with connect(dsn, "test") as connection:
        return connection.execute(
            "SELECT subject = catalog, attempts, due = 'infinity', reason FROM pgcatalog_queue ORDER BY 1"
        ).fetchall()


def work_again(site: Any, kind: Any) -> None:
    """Do the waiting jobs, up to 12 times, as if the pause were over after each of them."""
    for _ in range(12):
        kind._paused_until = 0.0
        work(site, rounds=1)
        if not queued(site[2]):
            break


def test_pages_wait_for_an_embedder_that_is_down_however_long(site: Any, kind: Embedding) -> None:
    portal, _, dsn = site
    with serving() as answers:
        set_embedder(portal, answers.url)
        work(site)
    clear_embedder_state()
    page = create(portal, "Document", "page", title="Annual leave")
    transaction.commit()
    work_again(site, kind)
    assert [(is_tool, attempts, failed) for is_tool, attempts, failed, _ in queued(dsn)] == [(False, 0, False)]
    assert "Connect" in queued(dsn)[0][3]
    with serving() as answers:
        set_embedder(portal, answers.url)
        work_again(site, kind)
    assert queued(dsn) == []
    assert chunks(site, page)


#: Failure of an embedder for a page -> whether it counts as an attempt: only failures that may depend on the text do.
NO_VECTORS = {
    "busy": (status(429, Retry_After="7"), 0),
    "broken": (status(500), 1),
    "overloaded": (status(503), 0),
    "elsewhere": (status(302, Location="http://127.0.0.1:1/"), 0),
    "NaN": (embedding("[NaN, 1, 1, 1]"), 0),
    "zeros": (embedding("[0, 0, 0, 0]"), 0),
    "nothing": (lambda request: (200, {}, b'{"data": []}'), 0),
    "closed": (lambda request: (200, {"Content-Length": "100", "Connection": "close"}, b"{}"), 0),
}


@pytest.mark.parametrize(
    "luck",
    [luck if luck in ("busy", "broken", "NaN") else pytest.param(luck, marks=pytest.mark.slow) for luck in NO_VECTORS],
)
def test_wrong_vectors_are_not_stored_and_requested_again(site: Any, kind: Embedding, luck: str) -> None:
    portal, worker, dsn = site
    with serving() as answers, connect(dsn, "test") as connection, ThreadPoolExecutor(1) as pool:
        set_embedder(portal, answers.url)
        work(site)
        answers.answer, attempts = NO_VECTORS[luck]
        page = create(portal, "Document", "page", title="Annual leave")
        transaction.commit()
        pool.submit(worker.run_until_empty).result()
        [(is_tool, attempted, is_failed, reason)] = queued(dsn)
        assert (is_tool, attempted, is_failed, bool(reason)) == (False, attempts, False, True)
        longest = 7 if luck == "busy" else 60
        assert 0 < (queue.seconds_to_next(connection, ["embed"]) or 0) <= longest
        assert chunks(site, page) == []
        answers.answer = vectors
        work_again(site, kind)
        assert queued(dsn) == []
        assert len(chunks(site, page)) == 1


def test_failing_text_is_dropped_after_attempts_and_retried_on_demand(site: Any) -> None:
    portal, _, dsn = site

    def answer(request: dict[str, Any]) -> Answer:
        return status(500)(request) if "poison" in str(request["input"]) else vectors(request)

    with serving(answer) as answers, connect(dsn, "test") as connection:
        set_embedder(portal, answers.url)
        bad = create(portal, "Document", "bad", title="poison")
        page = create(portal, "Document", "page", title="Annual leave")
        transaction.commit()
        work(site)
        assert [(attempts, failed, reason[:22]) for _, attempts, failed, reason in queued(dsn)] == [
            (queue.MOST_ATTEMPTS, True, "the embedder returns 5")
        ]
        assert (bool(chunks(site, page)), chunks(site, bad)) == (True, [])
        answers.answer = vectors
        queue.repeat(connection, portal.portal_catalog._core.zoid, "embed")
        work(site)
        assert queued(dsn) == []
        assert chunks(site, bad)


def test_refused_text_fails_for_good_and_others_have_vectors(site: Any) -> None:
    portal, _, dsn = site

    def answer(request: dict[str, Any]) -> Answer:
        return status(400)(request) if "poison" in str(request["input"]) else vectors(request)

    with serving(answer) as answers:
        set_embedder(portal, answers.url)
        create(portal, "Document", "bad", title="poison")
        page = create(portal, "Document", "page", title="Annual leave")
        transaction.commit()
        work(site)
    assert [(failed, reason[:23]) for _, _, failed, reason in queued(dsn)] == [(True, "the embedder returns 40")]
    assert chunks(site, page)
    assert current_vectors(portal).is_complete


def test_model_replaced_at_the_same_address_gets_a_table_of_its_own(site: Any, kind: Embedding) -> None:
    portal = site[0]
    with serving() as answers:
        set_embedder(portal, answers.url)
        work(site)
        answers.answer = lambda request: vectors(request, dimension=7)
        create(portal, "Document", "page", title="Annual leave")
        transaction.commit()
        work_again(site, kind)
    assert current_vectors(portal).dimension == 7
    assert chunks(site, portal.page)


@pytest.mark.direct("the pooler of the tests logs in as one role")
def test_missing_pgvector_is_reported_and_vectors_are_computed_later(site: Any, kind: Embedding) -> None:
    portal, _, dsn = site
    needs_pgvector(portal)
    with connect(dsn, "test") as connection:
        connection.execute("CREATE ROLE plain_user LOGIN")
        connection.execute("DROP EXTENSION IF EXISTS vector CASCADE")
    with (
        connect(f"{dsn} user=plain_user", "test") as connection,
        pytest.raises(table.PgvectorMissing, match="superuser"),
    ):
        table.schema_of_pgvector(connection)
    with connect(dsn, "test") as connection:
        connection.execute("CREATE SCHEMA ext")
        connection.execute("CREATE EXTENSION vector SCHEMA ext")
    with (
        connect(f"{dsn} user=plain_user", "test") as connection,
        pytest.raises(table.PgvectorMissing, match="no USAGE privilege"),
    ):
        table.schema_of_pgvector(connection)
    with serving() as answers:
        set_embedder(portal, answers.url)
        work(site)
    assert current_vectors(portal).schema == "ext"
    assert chunks(site)


@pytest.mark.parametrize(("version", "is_old"), [("0.7.4", True), ("0.8.0", False), ("1.0", False), ("0.10", False)])
def test_pgvector_before_0_8_is_too_old(version: str, is_old: bool) -> None:
    assert (numbers_of(version) < table.OLDEST_PGVECTOR) == is_old


def test_a_restored_dump_without_the_tables_of_vectors_loses_nothing(site: Any) -> None:
    portal, _, dsn = site
    with serving() as answers:
        set_embedder(portal, answers.url)
        page = create(portal, "Document", "page", title="Annual leave")
        create(portal, "Document", "other", title="Another")
        transaction.commit()
        work(site)
        with connect(dsn, "test") as connection:
            connection.execute("DROP EXTENSION vector CASCADE")
            connection.execute(f"DROP TABLE {answering_name(connection)}")
        transaction.begin()
        assert table.vectors_of(portal.portal_catalog._core) is None
        portal.manage_delObjects(["other"])
        page.title = "Leave"
        page.reindexObject()
        transaction.commit()
        work(site)
    assert chunks(site, page)


def answering_name(connection: Any) -> str:
    [(name,)] = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '_chunks_[0-9]+$'").fetchall()
    return str(name)
