"""Metrics: each is counted right, documented, and passed to plone.observability if it is installed."""

from collections.abc import Callable
from collections.abc import Iterator
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import set_tracer_provider
from pathlib import Path
from plone.observability.otel import catalog as catalog_spans
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.metrics.database import of_standby
from plone.pgcatalog.metrics.database import replicas
from plone.pgcatalog.metrics.observability import process_metrics
from plone.pgcatalog.observe import trace
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import KINDS
from Products.CMFPlone.CatalogTool import CatalogTool
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.rebuilding import rebuilding
from tests.integration.vectors import set_embedder
from typing import Any

import json
import psycopg
import pytest
import re
import threading
import transaction
import yaml


MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
#: A replica's row in pg_stat_replication.
REPLICA = [{"name": "standby", "state": "streaming", "sync_state": "async", "lag_bytes": 10, "lag_seconds": 0.1}]
STANDBY = {"streaming": True, "lag_seconds": 0.1}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def of_process(db: Any) -> dict[Any, float]:
    """Return (name, sorted labels) -> value."""
    return {(m.name, tuple(sorted(m.labels.items()))): m.value for m in process_metrics(db)}


def of_database(dsn: str, check: bool = False) -> dict[str, float]:
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        return {metric.name: metric.value for metric in database_metrics(connection, check)}


@pytest.fixture(autouse=True)
def fresh_counters(monkeypatch: Any) -> None:
    monkeypatch.setattr(trace, "_cells", {})


def use_everything(portal: Any) -> None:
    """A site that is also searched by meaning: those metrics exist from the first job on."""
    len(portal.portal_catalog.unrestrictedSearchResults(portal_type="Document"))
    set_embedder(portal, "http://127.0.0.1:1/v1")


def test_every_figure_is_in_the_reference(portal: Any, db: Any, dsn: str) -> None:
    use_everything(portal)
    names = {name for name, _ in of_process(db)} | set(of_database(dsn, check=True)) | {"pgcatalog_up"}
    names |= {metric.name for metric in (*replicas(REPLICA), *of_standby(STANDBY))}
    documented = set(re.findall(r"^\| `(pgcatalog_\w+)`", REFERENCE.read_text("utf-8"), re.M))
    assert documented == names


def queries() -> list[str]:
    """Return the PromQL of the shipped dashboard and alert rules."""
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert all(rule["alert"].startswith("Catalog") and rule["annotations"]["summary"] for rule in alerts)
    assert len({rule["alert"] for rule in alerts}) == len(alerts) >= 10
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) >= 10
    return shown + [rule["expr"] for rule in alerts]


def test_the_dashboard_and_the_alerts_show_every_queue() -> None:
    asked = " ".join(queries())
    for kind in ("files", "vectors"):
        for figure in ("waiting", "failed", "oldest_seconds"):
            assert f"pgcatalog_{kind}_{figure}" in asked


#: Metrics that are above or below a limit if there is a fault.
FAULTS = {
    *("pgcatalog_up", "pgcatalog_attention", "pgcatalog_missing_parts", "pgcatalog_database_blockers"),
    *("pgcatalog_rows_without_metadata", "pgcatalog_stale_objects", "pgcatalog_job_failed", "pgcatalog_embedder_up"),
    *("pgcatalog_files_needed", "pgcatalog_files_failed", "pgcatalog_files_oldest_seconds"),
    *("pgcatalog_vectors_needed", "pgcatalog_vectors_failed", "pgcatalog_vectors_oldest_seconds"),
    *("pgcatalog_long_queries", "pgcatalog_slow_queries_dropped_total", "pgcatalog_slow_queries_failed_total"),
    *("pgcatalog_requests_waiting", "pgcatalog_retired_relations", "pgcatalog_database_oldest_transaction_seconds"),
    *("pgcatalog_replica_lag_seconds", "pgcatalog_standby_streaming", "pgcatalog_standby_lag_seconds"),
    *("pgcatalog_clock_offset_seconds", "pgcatalog_questions_total", "pgcatalog_query_seconds_bucket"),
}
#: Metrics of sizes, counts and progress, which signal no fault by themselves.
PLAIN = {
    *(
        "pgcatalog_rows",
        "pgcatalog_table_bytes",
        "pgcatalog_index_bytes",
        "pgcatalog_dead_rows",
        "pgcatalog_generation",
    ),
    *("pgcatalog_slow_queries", "pgcatalog_slow_queries_recorded_total", "pgcatalog_advice_waiting"),
    *("pgcatalog_last_vacuum_seconds", "pgcatalog_last_analyze_seconds", "pgcatalog_job_finished_seconds"),
    *("pgcatalog_files_waiting", "pgcatalog_vectors_waiting", "pgcatalog_vectors_chunks", "pgcatalog_vectors_bytes"),
    *("pgcatalog_rebuild_running", "pgcatalog_rebuild_done", "pgcatalog_rebuild_expected", "pgcatalog_rebuild_changes"),
    *("pgcatalog_retired_bytes", "pgcatalog_replicas", "pgcatalog_replica_lag_bytes", "pgcatalog_standby"),
    *("pgcatalog_database_connections", "pgcatalog_database_active", "pgcatalog_database_in_transaction"),
    *("pgcatalog_database_waiting", "pgcatalog_query_seconds_sum", "pgcatalog_query_seconds_count"),
    *(
        "pgcatalog_cache_hits_total",
        "pgcatalog_cache_misses_total",
        "pgcatalog_cache_bytes",
        "pgcatalog_cache_limit_bytes",
    ),
    *("pgcatalog_pool_size", "pgcatalog_pool_available", "pgcatalog_searches", "pgcatalog_searches_without_results"),
    *("pgcatalog_files_empty", "pgcatalog_files_scans"),
}


def test_each_figure_that_signals_a_fault_has_an_alert() -> None:
    """Each metric must be in one of the two lists, and those of faults in the how-to's table of alerts."""
    documented = set(re.findall(r"^\| `(pgcatalog_\w+)`", REFERENCE.read_text("utf-8"), re.M))
    assert documented == FAULTS | PLAIN
    assert FAULTS.isdisjoint(PLAIN)
    rules = [r for g in yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))["groups"] for r in g["rules"]]
    assert set(re.findall(r"pgcatalog_\w+", " ".join(rule["expr"] for rule in rules))) == FAULTS
    how_to = (MONITORING.parent / "how-to" / "monitor.md").read_text("utf-8")
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in how_to] == []


def test_dashboard_and_alerts_query_existing_metrics(portal: Any, db: Any, dsn: str) -> None:
    """Names, and the labels used in selectors or sums; the metrics of replicas are in the reference only."""
    use_everything(portal)
    labels: dict[str, set[str]] = {}
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        found = [*process_metrics(db), *database_metrics(connection, True), *replicas(REPLICA)]
    found += of_standby(STANDBY)
    for metric in found:
        labels.setdefault(metric.name, set()).update(metric.labels)
    # Prometheus has these itself, and would rename ours.
    assert {"job", "instance"}.isdisjoint(set().union(*labels.values()))
    labels["pgcatalog_up"] = set()
    for query in queries():
        names = set(re.findall(r"\bpgcatalog_\w+", query))
        assert names, query
        assert names <= set(labels), query
        asked = {label for by in re.findall(r"\bby \(([^)]+)\)", query) for label in by.split(", ")}
        asked |= set(re.findall(r"[{,] *(\w+)=", query))
        for name in names:
            assert asked <= labels[name] or len(names) > 1, query
        assert query.count("(") == query.count(")")


def test_replicas_are_distinguished_and_invisible_values_left_out() -> None:
    hidden = {"name": "", "state": None, "sync_state": None, "lag_bytes": None, "lag_seconds": None}
    found = [(m.name, m.value, m.labels) for m in replicas([*REPLICA, *REPLICA, hidden])]
    assert found[0][:2] == ("pgcatalog_replicas", 3)
    assert len(found) == 5
    assert {labels["number"] for _, _, labels in found[1:]} == {"0", "1"}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ({"SearchableText": "x", "path": "/plone"}, "text"),
        ({"UID": "x"}, "uid"),
        ({"path": "/plone", "portal_type": "Document"}, "path"),
        ({"portal_type": "Document"}, "other"),
    ],
)
def test_statements_are_counted_by_the_kind_of_their_search(catalog: Any, query: Any, kind: str) -> None:
    len(catalog.unrestrictedSearchResults(**query))
    assert [(found, sum(counts)) for found, _operation, _seconds, counts in trace.totals()] == [(kind, 1)]


def test_search_without_a_statement_is_not_counted(catalog: Any) -> None:
    len(catalog.unrestrictedSearchResults(portal_type=[]))
    assert list(trace.totals()) == []


def test_buckets_are_cumulative_and_end_with_all() -> None:
    for seconds in (0.0001, 0.0005, 0.003, 0.4, 100.0):
        trace.observe({}, "page", seconds)
    [(_, _, total, counts)] = trace.totals()
    assert total == pytest.approx(100.4036)
    assert counts == [2, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1]
    found = of_process(None)
    labels = (("kind", "other"), ("operation", "page"))
    buckets = [v for (name, _), v in found.items() if name == "pgcatalog_query_seconds_bucket"]
    assert buckets == [2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5]
    assert found["pgcatalog_query_seconds_count", labels] == 5
    assert found["pgcatalog_query_seconds_bucket", tuple(sorted({*labels, ("le", "+Inf")}))] == 5


def test_concurrent_counts_are_not_lost() -> None:
    def count() -> None:
        for _ in range(2000):
            trace.observe({"path": "/"}, "page", 0.001)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [(_, _, _, counts)] = trace.totals()
    assert sum(counts) == 8000


def test_cache_and_pool(catalog: Any, db: Any) -> None:
    hits = ("pgcatalog_cache_hits_total", (("kind", HITS),))
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    first = of_process(db)
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    second = of_process(db)
    assert second[hits] > first[hits]
    for kind in KINDS:
        assert second["pgcatalog_cache_hits_total", (("kind", kind),)] >= 0
        assert second["pgcatalog_cache_misses_total", (("kind", kind),)] >= 0
    size = sum(second["pgcatalog_cache_bytes", (("kind", kind),)] for kind in KINDS)
    assert 0 < size <= second["pgcatalog_cache_limit_bytes", ()]
    assert second["pgcatalog_pool_size", (("pool", "storage"),)] >= 1


def test_the_figures_of_the_database(portal: Any, dsn: str) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    found = of_database(dsn, check=True)
    assert found["pgcatalog_rows"] == len(portal.portal_catalog)
    with psycopg.connect(dsn) as connection:
        assert [(found["pgcatalog_generation"],)] == connection.execute(
            "SELECT generation FROM pgcatalog_state"
        ).fetchall()
    assert found["pgcatalog_rows_without_metadata"] == found["pgcatalog_stale_objects"] == 0
    assert found["pgcatalog_database_connections"] >= 1
    # One machine, one clock.
    assert abs(found["pgcatalog_clock_offset_seconds"]) < 1
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE object_state SET idx = NULL WHERE idx ->> 'getId' = 'page'")
    assert of_database(dsn, check=True)["pgcatalog_rows_without_metadata"] == 1


def test_rebuild_is_shown_in_metrics(portal: Any, db: Any, dsn: str) -> None:
    create(portal, "Folder", "folder")
    transaction.commit()
    before = of_database(dsn)
    assert (before["pgcatalog_rebuild_running"], before["pgcatalog_rebuild_expected"]) == (0, 0)
    with rebuilding(db) as steps:
        steps.run("replay")
        portal.folder.reindexObject()
        transaction.commit()
        during = of_database(dsn)
        steps.run()
    assert during["pgcatalog_rebuild_running"] == 1
    assert during["pgcatalog_rebuild_done"] == during["pgcatalog_rebuild_expected"] == before["pgcatalog_rows"]
    assert during["pgcatalog_rebuild_changes"] >= 1
    assert of_database(dsn)["pgcatalog_rebuild_expected"] == 0


# -- plone.observability


@pytest.fixture
def observability() -> Any:
    """The module for plone.observability, which the test group installs."""
    from plone.pgcatalog.metrics import observability

    return observability


def test_plone_observability_shows_the_metrics(app: Any, db: Any, dsn: str, observability: Any) -> None:
    from plone.observability.interfaces import IMetricProvider
    from plone.observability.metrics.formatters import PrometheusFormatter
    from zope.component import getAdapters

    len(app.plone.portal_catalog.unrestrictedSearchResults(portal_type="Document"))
    providers = dict(getAdapters((app,), IMetricProvider))
    found = [m for name in ("pgcatalog", "pgcatalog-database") for m in providers[name].collect()]
    assert {m.name for m in found} >= {"pgcatalog_query_seconds_count", "pgcatalog_rows", "pgcatalog_cache_bytes"}
    text = PrometheusFormatter().format(found)
    assert re.search(r'^pgcatalog_rows\{scope="global",catalog="\w+",site="/plone"\} \d+$', text, re.M)


def test_ready_means_that_the_database_answers(app: Any, dsn: str, observability: Any, tmp_path: Path) -> None:
    from plone.observability.interfaces import IReadinessCheck
    from zope.component import getUtility

    check = getUtility(IReadinessCheck, name="pgcatalog")
    assert check() == (True, "1 catalogs")
    gone = observability.CatalogReadiness()
    assert gone()[0]  # no storage of ours: nothing to wait for
    gone.dsn = f"host={tmp_path} dbname=nothing"
    observability.TIMEOUT, before = 0.5, observability.TIMEOUT
    try:
        ready, sentence = gone()
    finally:
        observability.TIMEOUT = before
    assert not ready
    assert "does not answer" in sentence


Spans = Callable[[], tuple[ReadableSpan, ...]]
STATEMENTS = ("db.statement", "db.query.text")


@pytest.fixture(scope="module")
def traced(site_template: str, postgres: Any) -> Iterator[tuple[Any, InMemorySpanExporter]]:
    """A site whose process is instrumented as plone.observability does it; and its exported spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    set_tracer_provider(provider)
    instrumentor = PsycopgInstrumentor()
    # The instrumentation's uninstall is bound to psycopg's own class, and creates no connections of another one.
    connect = vars(psycopg.Connection)["connect"]
    methods = set(vars(CatalogTool))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLONE_OBSERVABILITY_OTEL_ENABLED", "1")
        instrumentor.instrument(tracer_provider=provider)
        catalog_spans.instrument_catalog()
        try:
            with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal:
                create(portal, "Document", "page", title="Page")
                transaction.commit()
                yield portal, exporter
        finally:
            catalog_spans.uninstrument_catalog()
            instrumentor.uninstrument()
            psycopg.Connection.connect = connect  # type: ignore[method-assign]
            # It leaves inherited methods set on the class, which would hide a patch of theirs.
            for name in set(vars(CatalogTool)) - methods:
                delattr(CatalogTool, name)


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
    # Each in a transaction of its own: the first message also sends the savepoint.
    for portal_type in ("Document", "News Item"):
        query = {"portal_type": portal_type, "sort_on": "modified", "getId": method}
        spans = spans_of(traced, lambda catalog, query=query: getattr(catalog, method)(**query))
        # The last span to end is the outermost; searchResults calls unrestrictedSearchResults.
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
    with portal.portal_catalog._core.session.connection.cursor() as cursor:
        cursor.execute("SELECT relation FROM pgcatalog_state")
        relation = cursor.fetchone()["relation"]
    written = [statement(s) for s in exporter.get_finished_spans()]
    assert any(f'INSERT INTO "{relation}"' in text or f'"{relation}"' in text for text in written)


def test_spans_contain_no_values(traced: Any) -> None:
    spans = spans_of(
        traced, lambda catalog: list(catalog.searchResults(SearchableText="confidential", getId="classified"))
    )
    for span in spans:
        shown = f"{span.name} {dict(span.attributes or {})}"
        assert "confidential" not in shown
        assert "classified" not in shown
