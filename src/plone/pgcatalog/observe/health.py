"""Faults and delays in the catalogs of a database that need attention, and their summary in one line."""

from collections.abc import Callable
from datetime import timedelta
from plone.pgcatalog.database import counts
from plone.pgcatalog.database import restored
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.expected import can_be_read
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.database.expected import NamedStatement
from plone.pgcatalog.database.expected import shared_faults
from plone.pgcatalog.database.expected import TRIGRAMS
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.needed import files_in
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.needed import NO_ROWS
from plone.pgcatalog.database.restored import sites_without_table
from plone.pgcatalog.distribution import version_of
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import joined
from plone.pgcatalog.queue.progress import TITLES
from plone.pgcatalog.queue.table import MOST_FAILURES
from psycopg import Connection
from psycopg.errors import QueryCanceled
from typing import Any


#: Age in seconds from which a transaction is reported: it blocks VACUUM and the removal of retired tables.
OLDEST_SECONDS = 3600
#: Lag of a standby in seconds from which it is reported.
MAX_REPLAY_LAG = 30.0
#: Seconds from which a waiting job is reported although a worker is connected: workers start a job at once.
LONGEST_WAIT = 600
#: Seconds from which a waiting job is reported if no worker is connected to the database.
WITHOUT_WORKER = 30
#: Factor by which slow queries must exceed their usual number, and number of ``long_queries``, to be reported.
UNUSUAL = 1.5
FEW_LONG = 5
#: The settings of the embedder.
EMBEDDER = ("embedder_url", "embedder_model", "embedder_question_prefix", "embedder_passage_prefix")
#: Adds ``embedder_fault`` to each catalog of ``statistics.catalogs``: why the embedder returns no vectors, or "".
CheckEmbedders = Callable[[list[dict[str, Any]]], None]
#: The summary if nothing needs attention.
HEALTHY = _("Healthy: nothing needs attention")
#: The figures of a database without the tables that all catalogs share.
NOTHING: dict[str, Any] = {
    "catalogs": [],
    "retired": [],
    "counts_bytes": 0,
    "connections": None,
    "oldest": None,
    "blockers": [],
    "standby": None,
}
#: Size in bytes up to which a table needs no planner statistics.
SMALL_TABLE = 1 << 20
#: Maximum number of sentences in the summary.
NAMED = 3


def check_no_embedder(catalogs: list[dict[str, Any]]) -> None:
    """Leave *catalogs* as they are: no embedder is checked."""


def collect(
    connection: Connection[Any], check: bool = False, check_embedders: CheckEmbedders = check_no_embedder
) -> dict[str, Any]:
    """Return the figures of ``statistics.overview``, those of each catalog, and ``attention``, English sentences.

    - Also included: missing parts, faults, sites without a table, and upgrade steps that have not been run.
    - If a shared table or column is missing in a database that has or had a catalog, the other figures are empty.
    - *check* also counts damaged rows and lost references; this reads all rows and objects.
    - *check_embedders* is called with the catalogs, to add the faults of their embedders.
    - Raises psycopg.Error if a shared table or column is missing in a database that never had a catalog.
    """
    execute = statistics.executing(connection)
    faults = shared_faults(execute)
    if not can_be_read(faults) and restored.is_expected(connection):
        figures = NOTHING | of_shared(faults) | {"upgrades": list(restored.waiting(connection))}
        figures["missing"] = restored.missing(connection)
        return figures | {"attention": [english(sentence) for sentence in attention(figures)]}
    figures = statistics.overview(execute)
    catalogs = statistics.catalogs(connection, figures["catalogs"])
    figures |= of_shared(faults) | of_sites(connection)
    add_needed(execute, catalogs)
    check_embedders(catalogs)
    if check:
        for catalog in catalogs:
            if statistics.lost_columns(catalog):
                continue
            catalog["rows_without_idx"] = statistics.rows_without_idx(connection, catalog["relation"])
            catalog["different_counts"] = counts.differences(connection.cursor(), catalog["relation"])
        relations = [catalog["relation"] for catalog in catalogs]
        # The idx of a catalog without a table stays until a rebuild, and would count as stale.
        if not figures["without_table"] and not any(map(statistics.lost_columns, catalogs)):
            figures["stale_objects"] = statistics.stale_objects(connection, relations)
        figures["lost_references"] = lost_references(connection)
    figures["attention"] = [english(sentence) for sentence in attention(figures)]
    return figures


def of_shared(faults: list[dict[str, str]]) -> dict[str, Any]:
    """Return the *faults* of shared parts for ``attention``: ``missing``, which a start of Zope creates, and ``faults``."""
    missing = [fault["name"] for fault in faults if not fault["line"]]
    return {"missing": missing, "faults": [fault for fault in faults if fault["line"]]}


def of_sites(connection: Connection[Any]) -> dict[str, Any]:
    """Return the figures of sites for ``attention``, besides those of their catalogs; rows of *connection* are dicts."""
    without_table = [{"catalog": zoid, "site": site} for zoid, site in sites_without_table(connection).items()]
    return {
        "missing": restored.missing(connection),
        "without_table": without_table,
        "upgrades": list(restored.waiting(connection)),
    }


def add_needed(execute: Execute, catalogs: list[dict[str, Any]]) -> None:
    """Add to each of *catalogs* the figures of ``store_needed``, read with *execute*."""
    for catalog in catalogs:
        jobs = NeededJobs(execute, catalog["catalog"])
        store_needed(catalog, jobs, *(execute(*statement) for statement in needed_statements(catalog, jobs)))


def needed_statements(catalog: dict[str, Any], jobs: NeededJobs) -> tuple[NamedStatement, NamedStatement]:
    """Return the statements for files and for pages of *catalog* that need one of *jobs*, which has not been queued.

    Files need no job if no text is stored or queued and xberg is not installed here.
    """
    if statistics.lost_columns(catalog):
        return NO_ROWS, NO_ROWS
    reads_files = jobs.has_texts or version_of("xberg") is not None
    return jobs.files_statement() if reads_files else NO_ROWS, jobs.pages_statement()


def store_needed(catalog: dict[str, Any], jobs: NeededJobs, files: list[Any], pages: list[Any]) -> None:
    """Add to *catalog* the number of objects whose *jobs* are not queued, by kind, and the settings of its embedder.

    *files* and *pages* are the rows of ``needed_statements``.
    """
    catalog["settings"] = {name: jobs.settings.get(name, "") for name in EMBEDDER}
    catalog["needed"] = {"text": len(files_in(files)), "embed": len(pages)}
    # The job that maintains the tables of chunks queues the jobs of pages.
    catalog["needed_later"] = {"text": False, "embed": jobs.has_table_job}


def unfinished(catalog: dict[str, Any], kind: str) -> int:
    """Return how many objects of *catalog* need a job of *kind*, queued or not, that has not failed."""
    return int(catalog["needed"][kind] + catalog["queue"].get(kind, {"waiting": 0})["waiting"])


def of_files(catalog: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the files of *catalog*.

    - waiting: files whose text is not extracted yet
    - scans: files whose scanned pages are not recognised yet
    - failed, empty: files that could not be read, and files in which no text was found
    - is_limited: True if older ones of these are no longer stored
    - oldest_seconds: the time for which the oldest job for a text has waited
    """
    nothing = {"waiting": 0, "failed": 0, "empty": 0, "oldest_seconds": 0.0}
    text, scan = (nothing | catalog["queue"].get(kind, {}) for kind in ("text", "scan"))
    return {
        "waiting": unfinished(catalog, "text"),
        "scans": scan["waiting"],
        "failed": text["failed"] + scan["failed"],
        "empty": text["empty"] + scan["empty"],
        "is_limited": any(work["failed"] + work["empty"] >= MOST_FAILURES for work in (text, scan)),
        "oldest_seconds": text["oldest_seconds"],
    }


def line(figures: dict[str, Any]) -> str:
    """Return a message of one line about the catalogs in *figures*."""
    sentences = attention(figures)
    if sentences:
        text = joined(sentences[:NAMED])
        if len(sentences) > NAMED:
            text = _("${sentences}; and ${number} more", {"sentences": text, "number": str(len(sentences) - NAMED)})
        return _("Needs attention: ${sentences}", {"sentences": text})
    slow = [slow_queries(catalog) for catalog in figures["catalogs"] if catalog["slow_queries"]]
    return _("${healthy}; ${slow}", {"healthy": HEALTHY, "slow": joined(slow[:NAMED])}) if slow else HEALTHY


def slow_queries(catalog: dict[str, Any]) -> str:
    """Return a message with the number of slow searches in *catalog* in the last day, and their usual number."""
    usual = catalog["usual_queries"]
    return _(
        "${number} slow queries in 24 hours, ${long} of them slow for this site (${usual})",
        {
            "number": str(catalog["slow_queries"]),
            "long": str(catalog["long_queries"]),
            "usual": _("the usual number is not known yet") if usual is None else _("usually ${n}", {"n": str(usual)}),
        },
    )


def is_unusual(catalog: dict[str, Any]) -> bool:
    """Return True if *catalog* had many more slow queries in the last day than on a day of the week before."""
    usual = catalog["usual_queries"] or 0
    return bool(catalog["long_queries"] >= FEW_LONG and catalog["slow_queries"] >= UNUSUAL * usual)


def attention(figures: dict[str, Any]) -> list[str]:
    """Return a message for each thing in *figures* that needs attention."""
    sentences = []
    if missing := figures.get("missing"):
        sentences.append(
            _(
                "missing or disabled in the database: ${names}; restart Zope to recreate them",
                {"names": ", ".join(missing)},
            )
        )
    sentences += [of_fault(fault) for fault in figures.get("faults", ())]
    sentences += [
        _(
            "${site}: the catalog has no table, for example because the site was copied, imported or partially"
            " restored; run pgcatalog rebuild to fill it",
            {"site": tool["site"]},
        )
        for tool in figures.get("without_table", ())
    ]
    sentences += [
        _(
            "${site}: upgrade steps are pending: ${steps}; run them in Site Setup, Add-ons",
            {"site": waiting["site"], "steps": ", ".join(f"“{title}”" for title in waiting["steps"])},
        )
        for waiting in figures.get("upgrades", ())
    ]
    for catalog in figures["catalogs"]:
        site = {"site": catalog.get("site") or catalog["relation"]}
        rebuild = catalog["rebuild"]
        if catalog["unfilled"] and not (rebuild and rebuild["running"]):
            sentences.append(
                _(
                    "${site}: the catalog contains only objects saved since the site was copied, imported or"
                    " partially restored; run pgcatalog rebuild to fill it",
                    site,
                )
            )
        if rebuild is not None and not rebuild["running"]:
            sentences.append(_("${site}: a rebuild was interrupted; run pgcatalog rebuild to resume it", site))
        invalid = [index["name"] for index in catalog["indexes"] if not index["valid"]]
        sentences += [
            _(
                "${site}: the index ${index} is invalid; run REINDEX INDEX CONCURRENTLY ${index}",
                site | {"index": index},
            )
            for index in invalid
        ]
        # A rebuild restores all parts, and the SQL indexes of a lost column cannot be created before.
        lost = statistics.lost_columns(catalog)
        parts = [part for part in catalog["missing"] if not lost or part["kind"] == "column"]
        sentences += [of_part(part, catalog["relation"], site) for part in parts]
        if not catalog["has_statistics"] and catalog["table_bytes"] > SMALL_TABLE:
            relation = {"relation": catalog["relation"]}
            sentences.append(
                _(
                    "${site}: the planner has no statistics for ${relation}; run pgcatalog vacuum ZOPE_CONF to create"
                    " them",
                    site | relation,
                )
            )
        if catalog.get("embedder_fault"):
            embedder = {"url": catalog["settings"]["embedder_url"], "reason": catalog["embedder_fault"]}
            sentences.append(
                _(
                    "${site}: the embedder at ${url} returns no vectors, so searches use words only: ${reason}; start"
                    " it, or clear its URL in the control panel PostgreSQL Catalog",
                    site | embedder,
                )
            )
        if catalog.get("rows_without_idx"):
            number = {"number": str(catalog["rows_without_idx"])}
            sentences.append(
                _("${site}: ${number} rows have no metadata; run pgcatalog verify to list them", site | number)
            )
        if catalog.get("different_counts"):
            number = {"number": str(catalog["different_counts"])}
            sentences.append(
                _(
                    "${site}: ${number} counts of values differ from the rows; run pgcatalog vacuum to repair them",
                    site | number,
                )
            )
        if is_unusual(catalog):
            sentences.append(
                _(
                    "${site}: ${slow}; run pgcatalog slow --since 24h, or open the tab Slow Queries, to see the causes",
                    site | {"slow": slow_queries(catalog)},
                )
            )
        sentences += of_jobs(catalog, site)
        failed = [job for job, state in sorted(catalog["jobs"].items()) if state["failed"]]
        sentences += [
            _(
                "${site}: the last ${job} failed; see the tab Advanced for the reason",
                site | {"job": TITLES.get(job, job)},
            )
            for job in failed
        ]
    sentences += standby_attention(figures.get("standby"))
    sentences += [of_blocker(blocker) for blocker in figures["blockers"]]
    oldest = figures["oldest"]
    if oldest is not None and oldest["seconds"] >= OLDEST_SECONDS:
        age = timedelta(seconds=round(oldest["seconds"]))
        sentences.append(
            _(
                "the transaction of process ${pid} is ${age} old and blocks VACUUM; run SELECT"
                " pg_terminate_backend(${pid}) to end it",
                {"pid": str(oldest["pid"]), "age": str(age)},
            )
        )
    if figures.get("stale_objects"):
        sentences.append(
            _(
                "${number} objects have an idx but no row; run pgcatalog vacuum to clear it",
                {"number": str(figures["stale_objects"])},
            )
        )
    if references := figures.get("lost_references"):
        sentences.append(
            _(
                "${number} references point to missing objects, such as ${examples}; run pgcatalog verify ZOPE_CONF"
                " to list their paths",
                {"number": str(references["number"]), "examples": ", ".join(references["examples"])},
            )
        )
    return sentences


def of_fault(fault: dict[str, str]) -> str:
    """Return the sentence about a *fault* of a shared part that a restart of Zope alone does not repair."""
    if fault["state"] == "invalid":
        return _("the index ${name} is invalid; run ${line}", fault)
    if fault["kind"] == TRIGRAMS:
        return _("the index ${name} is missing; run ${line} to create it", fault)
    return _("${name} is missing; run ${line} and restart Zope, which recreates the table, empty", fault)


def of_part(part: dict[str, str], relation: str, site: dict[str, str]) -> str:
    """Return the sentence about a *part* that the *relation* of a catalog has lost."""
    is_full = part["kind"] == "chunks" or part["name"].startswith(relation)
    name = part["name"] if is_full else f"{relation}.{part['name']}"
    return _("${site}: ${name} is missing or disabled; run ${line}", site | {"name": name, "line": part["line"]})


def of_blocker(blocker: dict[str, Any]) -> str:
    """Return the sentence about the session *blocker*, which other sessions wait for."""
    ages = {name: str(timedelta(seconds=round(blocker[name]))) for name in ("seconds", "wait_seconds")}
    texts = {
        name: str(blocker[name]) or "–" for name in ("pid", "user", "application_name", "state", "query", "waiting")
    }
    return _(
        "the session ${pid} (${user}, ${application_name}, ${state}) has blocked ${waiting} other sessions for"
        " ${wait_seconds}, its transaction is ${seconds} old, its last statement: ${query}; run SELECT"
        " pg_terminate_backend(${pid}) to end it",
        texts | ages,
    )


def lost_references(connection: Connection[Any]) -> dict[str, Any]:
    """Return the number of references to deleted objects, and examples; {} if there are none."""
    found: dict[str, Any]
    try:
        [found] = connection.execute(load_sql("findings_references")).fetchall()
    except QueryCanceled:
        return {}  # statement_timeout, with very many objects; ``pgcatalog check`` reports this
    return found if found["number"] else {}


def overdue(catalog: dict[str, Any]) -> list[str]:
    """Return the kinds of jobs of *catalog* that wait too long while no worker runs one of them.

    Too long is LONGEST_WAIT seconds, or WITHOUT_WORKER if no worker is connected.  A kind with a worker may wait for jobs of
    another kind, which have a higher priority.
    """
    is_busy = any(work["is_being_done"] for work in catalog["queue"].values())
    return [
        kind
        for kind, work in catalog["queue"].items()
        if kind in catalog["needed"]
        and work["oldest_seconds"] >= (LONGEST_WAIT if work["has_worker"] else WITHOUT_WORKER)
        and not (work["is_being_done"] or (work["has_worker"] and is_busy))
        and unfinished(catalog, kind)
    ]


def of_jobs(catalog: dict[str, Any], site: dict[str, str]) -> list[str]:
    """Return the sentences about files and pages of *catalog* whose jobs wait too long, or are not queued."""
    sentences = []
    waiting = overdue(catalog)
    for kind, number in catalog["needed"].items():
        if kind in waiting:
            sentences.append(of_overdue(kind, unfinished(catalog, kind), catalog["queue"][kind], site))
        elif number and not catalog["needed_later"][kind] and not catalog["unfilled"]:
            sentences.append(of_needed(kind, number, site))
    return sentences


def of_needed(kind: str, number: int, site: dict[str, str]) -> str:
    """Return the sentence about *number* objects that need a job of *kind* which is not queued."""
    values = site | {"number": str(number)}
    if kind == "embed":
        return _(
            "${site}: ${number} pages have neither vectors nor a queued job; run pgcatalog meaning ZOPE_CONF --site"
            " ${site} --backfill",
            values,
        )
    return _(
        "${site}: ${number} files have neither a text nor a queued job; run pgcatalog files ZOPE_CONF --site ${site}"
        " --backfill",
        values,
    )


def of_overdue(kind: str, number: int, work: dict[str, Any], site: dict[str, str]) -> str:
    """Return the sentence about jobs of *kind* that wait too long, for *number* objects."""
    values = site | {"number": str(number), "age": str(timedelta(seconds=round(work["oldest_seconds"])))}
    if kind != "embed":
        return _(
            "${site}: ${number} files wait for text extraction, the oldest for ${age}, and no worker processes them;"
            " start pgcatalog work, or a Zope with the extra plone.pgcatalog[files]",
            values,
        )
    if work["last_reason"]:
        return _(
            "${site}: ${number} pages wait for vectors, the oldest for ${age}: ${reason}; check the embedder and its"
            " settings",
            values | {"reason": work["last_reason"]},
        )
    return _(
        "${site}: ${number} pages wait for vectors, the oldest for ${age}, and no worker processes them; start"
        " pgcatalog work, or a Zope with the extra plone.pgcatalog[meaning]",
        values,
    )


def standby_attention(standby: dict[str, Any] | None, limit: float = MAX_REPLAY_LAG) -> list[str]:
    """Return sentences about a *standby*, a result of ``statistics.standby``, if it is over *limit* seconds behind."""
    if standby is None:
        return []
    lag = standby["lag_seconds"]
    if lag is None:
        return [
            _(
                "this standby is not connected to its primary, and the age of its data is unknown; check"
                " primary_conninfo and the server log"
            )
        ]
    if lag <= limit:
        return []
    age = {"age": str(timedelta(seconds=round(lag)))}
    if standby["streaming"]:
        return [_("this standby is up to ${age} behind its primary; check its load and the network", age)]
    return [
        _(
            "this standby is not connected to its primary, and its last change is ${age} old; check"
            " primary_conninfo and the server log",
            age,
        )
    ]
