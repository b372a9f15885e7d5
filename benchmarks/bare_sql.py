"""The lower bound: the scenarios as prepared SQL, written by hand for a narrow typed table, without a catalog."""

from benchmarks import queries
from benchmarks.documents import Document
from benchmarks.documents import documents
from benchmarks.documents import folders
from benchmarks.documents import STATES
from benchmarks.kept import announce
from benchmarks.rows import ROOT
from benchmarks.rows import Row
from benchmarks.scenarios import chosen
from benchmarks.scenarios import PAGE
from benchmarks.scenarios import Place
from benchmarks.scenarios import Scenario
from benchmarks.timing import repeated
from benchmarks.timing import summary
from benchmarks.worker import Progress
from collections.abc import Iterator
from itertools import batched
from typing import Any

import orjson
import psycopg


#: Workflow state -> number that replaces a set of roles.
ACL = {state: number for number, state in enumerate(STATES, 1)}
TABLE = """
CREATE TABLE doc (
    rid integer PRIMARY KEY, acl smallint NOT NULL, effective timestamptz NOT NULL, expires timestamptz NOT NULL,
    created timestamptz NOT NULL, modified timestamptz NOT NULL, portal_type text COLLATE "C" NOT NULL,
    review_state text COLLATE "C" NOT NULL, uid uuid NOT NULL, get_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL, parent text COLLATE "C" NOT NULL, sortable_title text COLLATE "C" NOT NULL,
    subject text[] NOT NULL, meta jsonb NOT NULL, tsv tsvector NOT NULL
) WITH (toast_tuple_target = 256)
"""
MAIN = ("path", "parent", "sortable_title", "subject", "get_id")
INDEXES = (
    "(review_state, acl, rid)",
    "(portal_type, rid) INCLUDE (acl)",
    "(created, rid) INCLUDE (portal_type, acl)",
    "(modified DESC, rid) INCLUDE (portal_type, review_state, acl)",
    "(sortable_title, rid) INCLUDE (portal_type)",
    "(get_id, rid) INCLUDE (portal_type)",
    "(parent, sortable_title, rid)",
    "(path)",
    "(uid)",
    "USING gin (subject)",
    "USING gin (tsv)",
)
COPY = "COPY doc FROM STDIN"
BATCH = 1000


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the records of the scenarios, and of an empty round trip, in the format of the other workers."""
    count, iterations, warmup = options["rows"], options["iterations"], options["warmup"]
    place = Place(ROOT, folders(count), [])
    with psycopg.connect(options["dsn"], autocommit=True) as connection:
        psycopg.types.json.set_json_loads(orjson.loads, connection)
        connection.prepare_threshold = 0
        make_table(connection, count, progress)
        announce(options, progress)
        connection.execute("SET plan_cache_mode = force_custom_plan")
        place = Place(ROOT, place.folders, [f"{number:032x}" for number in range(min(count, 200))])
        trip = repeated(lambda n: connection.execute("SELECT 1").fetchone(), iterations * 4, warmup)
        records = []
        for scenario in chosen(options["scenarios"]):
            for values, states in queries.STATES.items():
                for state in states:
                    # As many turns as the catalogs take.
                    progress(f"{scenario.name}, {values}, {state}")
            records += measure(connection, scenario, place, iterations, warmup)
        [(size,)] = connection.execute("SELECT pg_database_size(current_database())")
    measures = {
        "bare round trip": summary(trip),
        "database size": {"median": size / 2**20, "p95": None, "min": None, "n": 1, "unit": "MB"},
    }
    return {"measures": measures, "queries": records}


def make_table(connection: Any, count: int, progress: Progress) -> None:
    """Create the table, its indexes and statistics."""
    connection.execute(TABLE)
    for name in MAIN:
        connection.execute(f"ALTER TABLE doc ALTER {name} SET STORAGE MAIN")
    done = 0
    for batch in batched(documents(count), BATCH):
        with connection.cursor().copy(COPY) as copy:
            for document in batch:
                copy.write_row(row_of(document))
        done += len(batch)
        progress(f"filling in rows: {done} of {count}")
    progress("indexes")
    for index in INDEXES:
        connection.execute(f"CREATE INDEX ON doc {index}")
    connection.execute("VACUUM ANALYZE doc")


def row_of(document: Document) -> tuple[Any, ...]:
    """Return the columns of one document."""
    row = Row(document)
    path = "/".join(row.getPhysicalPath())
    meta = {name: getattr(row, name) for name in ("Title", "Description", "portal_type", "review_state")}
    meta["modified"] = document.created.isoformat()
    words = " ".join(sorted(set(row.SearchableText.lower().split())))
    created = f"{document.created.isoformat()}Z"
    return (
        *(document.number, ACL[document.state], created, "2499-12-31", created, created),
        *(row.portal_type, document.state, document.uid, document.id, path, path.rpartition("/")[0]),
        *(row.sortable_title, list(document.tags), orjson.dumps(meta).decode(), words),
    )


def measure(
    connection: Any, scenario: Scenario, place: Place, iterations: int, warmup: int
) -> Iterator[dict[str, Any]]:
    """Yield the records of *scenario*: varying values, as a count and as a first page."""
    [found] = connection.execute(*statement(scenario, place, 0, "all")).fetchone()
    for touch in ("len", "page"):
        statements = [statement(scenario, place, n + 1, touch) for n in range(warmup + iterations)]
        times = repeated(lambda n: connection.execute(*statements[n]).fetchall(), iterations, warmup)  # noqa: B023
        record = {"scenario": scenario.name, "touch": touch, "values": "varying", "state": "request"}
        yield record | {"found": found, "limited": scenario.limited} | summary(times)


def statement(scenario: Scenario, place: Place, n: int, touch: str) -> tuple[str, list[Any]]:
    """Return SQL and parameters of the n-th variant of *scenario*; the *touch* ``all`` also counts rows beyond the limit."""
    query = scenario.query(place, n)
    conditions: list[str] = []
    parameters: list[Any] = []
    for name, wanted in query.items():
        if name in CONDITIONS:
            sql, values = CONDITIONS[name](wanted)
            conditions.append(sql)
            parameters += values
    if scenario.anonymous:
        conditions.append("acl = 1 AND effective <= now() AND expires > now()")
    where = " AND ".join(conditions)
    if touch != "page":
        limit = query.get("sort_limit") if touch == "len" else None
        inner = f"SELECT 1 FROM doc WHERE {where}" + (f" LIMIT {limit}" if limit else "")
        return f"SELECT count(*) FROM ({inner}) d", parameters
    columns = {"sortable_title": "sortable_title", "created": "created", "getId": "get_id", "modified": "modified"}
    order = columns.get(query.get("sort_on", ""), "")
    direction = " DESC" if query.get("sort_order") == "reverse" else ""
    order = f"{order}{direction}, rid" if order else "rid"
    if "SearchableText" in query:
        # Without a rank: the best possible time for the table.
        order = "1"
    limit = min(PAGE, query.get("sort_limit", PAGE))
    page = f" LIMIT {limit} OFFSET {query.get('b_start', 0)}"
    ordering = "" if order == "1" else f" ORDER BY {order}"
    return f"SELECT path, meta FROM doc WHERE {where}{ordering}{page}", parameters


def by_path(wanted: Any) -> tuple[str, list[Any]]:
    if isinstance(wanted, dict):
        return "parent = %s", [wanted["query"]]
    return "path >= %s AND path < %s", [f"{wanted}/", f"{wanted}0"]


def by_tags(wanted: Any) -> tuple[str, list[Any]]:
    if isinstance(wanted, dict):
        return "subject @> %s", [wanted["query"]]
    return "subject && %s", [[wanted] if isinstance(wanted, str) else wanted]


def by_state(wanted: Any) -> tuple[str, list[Any]]:
    if isinstance(wanted, dict):
        return "review_state <> %s", [wanted["not"]]
    return "review_state = %s", [wanted]


def by_words(wanted: str) -> tuple[str, list[Any]]:
    return "tsv @@ %s::tsquery", [f"{wanted[:-1]}:*" if wanted.endswith("*") else wanted]


def by_created(wanted: Any) -> tuple[str, list[Any]]:
    since, until = (day.asdatetime() for day in wanted["query"])
    return "created BETWEEN %s AND %s", [since, until]


CONDITIONS: dict[str, Any] = {
    "portal_type": lambda wanted: ("portal_type = %s", [wanted]),
    "review_state": by_state,
    "Subject": by_tags,
    "path": by_path,
    "created": by_created,
    "UID": lambda wanted: ("uid = %s", [wanted]),
    "SearchableText": by_words,
}
