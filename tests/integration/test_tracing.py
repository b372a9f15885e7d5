"""OpenTelemetry: the spans of plone.observability, and those of psycopg's instrumentation below them, see our searches."""

from collections.abc import Callable
from collections.abc import Iterator
from opentelemetry import trace
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from plone.observability.otel import catalog as catalog_spans
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component.hooks import setSite

import psycopg
import pytest
import transaction


Spans = Callable[[], tuple[ReadableSpan, ...]]
STATEMENTS = ("db.statement", "db.query.text")


@pytest.fixture(scope="module")
def traced(site_template: str, postgres: Any) -> Iterator[tuple[Any, InMemorySpanExporter]]:
    """A site whose process is instrumented as plone.observability does it; and what it exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    instrumentor = PsycopgInstrumentor()
    # What the instrumentation takes back is bound to psycopg's own class, and makes no connections of another one.
    connect = vars(psycopg.Connection)["connect"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLONE_OBSERVABILITY_OTEL_ENABLED", "1")
        instrumentor.instrument(tracer_provider=provider)
        catalog_spans.instrument_catalog()
        try:
            with sites.opened(sites.clone(postgres, site_template)) as db, sites.application(db) as app:
                sites.login(app)
                setSite(app.plone)
                create(app.plone, "Document", "page", title="Page")
                transaction.commit()
                yield app.plone, exporter
        finally:
            catalog_spans.uninstrument_catalog()
            instrumentor.uninstrument()
            psycopg.Connection.connect = connect  # type: ignore[method-assign]


def statement(span: ReadableSpan) -> str:
    attributes = span.attributes or {}
    return str(next((attributes[name] for name in STATEMENTS if name in attributes), ""))


def spans_of(traced: tuple[Any, InMemorySpanExporter], search: Callable[[Any], Any]) -> list[ReadableSpan]:
    portal, exporter = traced
    transaction.begin()
    exporter.clear()
    search(portal.portal_catalog)
    return list(exporter.get_finished_spans())


@pytest.mark.parametrize("method", ["searchResults", "unrestrictedSearchResults", "__call__"])
def test_a_search_is_a_span_with_its_statement_below(traced: Any, method: str) -> None:
    # In a transaction of its own each: what is in the first message also brings the savepoint.
    for portal_type in ("Document", "News Item"):
        query = {"portal_type": portal_type, "sort_on": "modified", "getId": method}
        spans = spans_of(traced, lambda catalog, query=query: getattr(catalog, method)(**query))
        # The last to end is the outermost; searchResults calls unrestrictedSearchResults.
        search = [s for s in spans if s.name.startswith("catalog.")][-1]
        assert search.name == f"catalog.{method.replace('__call__', 'searchResults')}"
        assert search.attributes is not None
        assert search.attributes["plone.catalog.result_count"] == 0
        below = [s for s in spans if s.context.trace_id == search.context.trace_id and s is not search]
        assert any("SELECT" in statement(s) and '"portal_type"' in statement(s) for s in below)


def test_the_statements_of_a_commit_are_spans(traced: Any) -> None:
    portal, exporter = traced
    exporter.clear()
    portal.page.title = "Another"
    portal.page.reindexObject()
    transaction.commit()
    with portal.portal_catalog._catalog.session.connection.cursor() as cursor:
        cursor.execute("SELECT relation FROM pgcatalog_state")
        relation = cursor.fetchone()["relation"]
    written = [statement(s) for s in exporter.get_finished_spans()]
    assert any(f'INSERT INTO "{relation}"' in text or f'"{relation}"' in text for text in written)


def test_values_are_in_no_span(traced: Any) -> None:
    spans = spans_of(
        traced, lambda catalog: list(catalog.searchResults(SearchableText="confidential", getId="classified"))
    )
    for span in spans:
        shown = f"{span.name} {dict(span.attributes or {})}"
        assert "confidential" not in shown
        assert "classified" not in shown
