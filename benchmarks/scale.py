"""Worker of ``scale``: the catalog of a large site, filled like a rebuild does; measures its searches and costs.

Entries are generated without objects: the indexed values of one object of each type, varied.  Texts are taken from a pool
that the real text indexes have extracted; each row adds a unique word, as ids and names do.
"""

from benchmarks import queries
from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.documents import DAYS
from benchmarks.documents import FIRST_DAY
from benchmarks.documents import FOLDER_SIZE
from benchmarks.documents import STATES
from benchmarks.kept import keep
from benchmarks.machine import resident_mb
from benchmarks.rows import Row
from benchmarks.scenarios import Place
from benchmarks.scenarios import Scenario
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios import touch_len
from benchmarks.scenarios import TOUCHES
from benchmarks.text_search import uncached
from benchmarks.texts import documents_with_texts
from benchmarks.texts import FREQUENT
from benchmarks.texts import RARE
from benchmarks.texts import SYLLABLES
from benchmarks.texts import USUAL
from benchmarks.texts import WORDS
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import make_application
from benchmarks.zope_site import make_site
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace
from DateTime import DateTime
from datetime import timedelta
from datetime import UTC
from functools import cache
from itertools import accumulate
from itertools import batched
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.indexing import rebuild_relation as relation
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.objects import fresh_entry
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_worker import RebuildWorker
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.observe import plan
from plone.pgcatalog.sql.expression import Statement
from random import Random
from tests.integration.site import load_zope
from time import perf_counter
from typing import Any

import json
import psycopg
import transaction


SEED = 1507
#: Number of texts that the real indexes extract; with more rows, rows share them.
TEXTS = 4_000
TEXT_INDEXES = ("Title", "Description", "SearchableText")
TYPES = {"Document": 60, "Image": 15, "File": 10, "News Item": 9, "Event": 4, "Link": 2}
#: Sections of the site; the n-th of the other folders is in the one with a tenth of its number.
SECTIONS = 30
#: Numbers of creators and keywords: the n-th occurs 1/n as often as the first one.
CREATORS, TAGS, MOST_TAGS = 200, 1_000, 4
#: Interfaces that a share of the objects (MARKED) has besides those of their type.
MARKERS, MARKED = 8, 0.2
#: Rows in one transaction of the rebuild.
BATCH = 1000
#: A folder with a real object of each type.
REAL = "real"
SIZES = """
SELECT c.relname, pg_relation_size(c.oid) + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0)
FROM pg_class c WHERE c.relkind IN ('r', 'i') AND c.relnamespace = 'public'::regnamespace
"""
COPY = "COPY object_state (zoid, tid, class_mod, class_name, state, state_size, idx) FROM STDIN"
RELATION = "SELECT relation FROM pgcatalog_state"
Measures = dict[str, Any]
UIDS = 200
FACETS = ("portal_type", "review_state", "Creator", "Subject", "is_folderish")
#: The scenarios of ``level1`` without words, because the words here differ.
PLAIN = tuple(scenario for scenario in SCENARIOS if not scenario.name.startswith(("full text", "text ")))


def word(numbers: range, n: int) -> str:
    return WORDS[numbers[n % len(numbers)]]


SCALE_SCENARIOS = (
    *PLAIN,
    Scenario("section and type", lambda place, n: {"path": place.folder(n % 10), "portal_type": "Document"}),
    Scenario("a word of one row", lambda place, n: {"SearchableText": unique_word(n)}),
    Scenario("a rare word", lambda place, n: {"SearchableText": word(RARE, n)}),
    Scenario("a usual word", lambda place, n: {"SearchableText": word(USUAL, n)}),
    Scenario("a frequent word", lambda place, n: {"SearchableText": word(FREQUENT, n)}),
    Scenario("two frequent words", lambda p, n: {"SearchableText": f"{word(FREQUENT, n)} {word(FREQUENT, n + 1)}"}),
    Scenario("a frequent word, as anonymous", lambda p, n: {"SearchableText": word(FREQUENT, n)}, anonymous=True),
    Scenario("a usual word and a type", lambda p, n: {"SearchableText": word(USUAL, n), "portal_type": "News Item"}),
    Scenario("a word's beginning", lambda place, n: {"SearchableText": f"{word(USUAL, n)[:4]}*"}),
)


@dataclass(frozen=True)
class Tree(Place):
    """The folders of the site: ``folder(n)`` is the path of one."""

    def folder(self, number: int) -> str:
        number %= self.folders
        if number < SECTIONS:
            return f"{self.path}/folder{number}"
        return f"{self.folder((number - SECTIONS) // 10)}/folder{number}"


def folders(rows: int) -> int:
    """Return the number of folders among *rows* rows."""
    return max(SECTIONS, rows // FOLDER_SIZE)


def unique_word(number: int) -> str:
    """Return the unique word of the row with that *number*: four syllables."""
    base = len(SYLLABLES)
    # A prime, so that no two numbers below 60⁴ share a word.
    number = number * 7_368_787 % base**4
    parts = []
    for _ in range(4):
        number, part = divmod(number, base)
        parts.append(SYLLABLES[part])
    return "".join(parts)


class SiteRows:
    """*count* entries for the catalog tool *catalog*; *examples* are those of a real object of each of ``TYPES`` and *Folder*."""

    def __init__(self, catalog: Any, tree: Tree, examples: Mapping[str, Entry], count: int) -> None:
        self.count = count
        self.tree = tree
        self.examples = examples
        core = catalog._core
        columns = [c.name for name in TEXT_INDEXES for c in core.translator(name).columns()]
        self.texts = []
        for document in documents_with_texts(min(TEXTS, count)):
            row = Row(document)
            row.SearchableText = f"{document.title} {document.description} {document.text}"
            entry = core.entry(row, "/text")
            metadata = {name: entry.idx[name] for name in ("Title", "Description") if name in entry.idx}
            self.texts.append(({name: entry.columns.get(name) for name in columns}, metadata))
        self.creators = [f"author{n}" for n in range(CREATORS)]
        self.tags = [f"tag{n}" for n in range(TAGS)]
        weights = list(accumulate(1 / n for n in range(1, TAGS + 1)))
        self.by_creator, self.by_tag = weights[:CREATORS], weights

    def entries(self, first_zoid: int) -> Iterator[Entry]:
        """Yield the entries, for objects from *first_zoid* on; the same ones each time."""
        rng = Random(SEED)
        kinds, shares = list(TYPES), list(TYPES.values())
        states, state_shares = list(STATES), list(STATES.values())
        for number in range(self.count):
            is_folder = number < self.tree.folders
            kind = "Folder" if is_folder else rng.choices(kinds, shares)[0]
            path = self.tree.folder(number)
            if not is_folder:
                path += f"/doc{number}"
            state = rng.choices(states, state_shares)[0]
            yield self._entry(rng, number, first_zoid + number, kind, state, path)

    def _entry(self, rng: Random, number: int, zoid: int, kind: str, state: str, path: str) -> Entry:
        example = self.examples[kind]
        text, shown = rng.choice(self.texts)
        creator = rng.choices(self.creators, cum_weights=self.by_creator)[0]
        tags = sorted(set(rng.choices(self.tags, cum_weights=self.by_tag, k=rng.randint(0, MOST_TAGS))))
        created = (FIRST_DAY + timedelta(minutes=rng.randrange(DAYS * 1440))).replace(tzinfo=UTC)
        modified = created + timedelta(minutes=rng.randrange(200_000))
        provides = example.columns["object_provides"]
        if rng.random() < MARKED:
            provides = sorted([*provides, f"site.policy.interfaces.IMarker{int(MARKERS * rng.random() ** 2)}"])
        roles = ["Anonymous"]
        if state != "published":
            # Each section has its own readers.
            section = path.removeprefix(self.tree.path).split("/")[1]
            roles = sorted([*example.columns["allowed_roles"], f"user:{creator}", f"user:readers-{section}"])
        parent, id = path.rsplit("/", 1)
        word = unique_word(number)
        uid = f"{number + 1:032x}"
        title = f"{shown['Title']} {word}"
        plain = {
            "id": id,
            "portal_type": kind,
            "review_state": state,
            "sortable_title": title.lower(),
            "object_provides": provides,
        }
        columns = {
            **example.columns,
            **text,
            **plain,
            "get_id": id,
            "uid": uid,
            "creator": creator,
            "cmf_uid": None,
            "path_value": path,
            "parent_path": parent,
            "depth": path.count("/"),
            "date": modified,
            "created": created,
            "modified": modified,
            "effective": created,
            "effective_range_since": int(created.timestamp() // 60),
            "subject": tags or None,
            "allowed_roles": roles,
            "searchable_text": f"{text['searchable_text']} '{word}':{text['searchable_text_words'] + 1}A",
            "searchable_text_words": text["searchable_text_words"] + 1,
            "searchable_text_source": f"{text['searchable_text_source']} {word}",
        }
        idx = {
            **example.idx,
            **shown,
            **plain,
            "Title": title,
            "path": path,
            "getId": id,
            "UID": uid,
            "Creator": creator,
            "listCreators": encode((creator,)),
            "Subject": encode(tuple(tags)),
            "allowedRolesAndUsers": roles,
            **{name: day(columns[name].date()) for name in ("created", "modified", "effective")},
        }
        idx["effectiveRange"] = encode((columns["effective_range_since"], None))
        return replace(example, path=path, zoid=zoid, columns=columns, idx=idx)


@cache
def day(date: Any) -> Any:
    """Return *date* as metadata, without the time of day, which would be slow to generate."""
    return encode(DateTime(date.isoformat()))


class MadeRows(RebuildWorker):
    """Writes *entries* into the relation, with an object for each, and then the real objects of the site."""

    def __init__(self, catalog: Any, connection: Any, entries: Iterator[Entry]) -> None:
        super().__init__(catalog, connection)
        self._batches = batched(entries, BATCH)

    def step(self) -> int | None:
        batch = next(self._batches, None)
        if batch is None:
            return super().step()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            target = relation.read(cursor, self.zoid, "FOR KEY SHARE")
            assert target is not None
            self.manager.begin()
            # An object for each row, as a save would store it.
            cursor.execute("SELECT max(tid) FROM transaction_log")
            [(tid,)] = cursor.fetchall()
            with cursor.copy(COPY) as copy:
                for entry in batch:
                    state = json.dumps({name: entry.idx.get(name, "") for name in ("Title", "Description")})
                    row = [entry.zoid, tid, "plone.dexterity.content", "Item", state, len(state), dump(entry.idx)]
                    copy.write_row(row)
            self._write(cursor, target, list(batch))
        self.manager.abort()
        return len(batch)


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the records of the searches, and the measures."""
    if kept := options.get("kept"):
        measures = kept["measures"]
    else:
        progress("filling")
        # In a separate process, so that the memory of this one is that of the searches.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            measures = pool.submit(fill, options).result()
        keep(options, measures)
    progress("starting Zope")
    place = opened(options, "searching")
    uids = [f"{number + 1:032x}" for number in range(UIDS)]
    place.place = Tree(f"/{SITE}", folders(options["rows"]), uids)
    iterations, warmup = options["iterations"], options["warmup"]
    with psycopg.connect(options["dsn"], autocommit=True) as connection:
        # A suitable setting for searches in a large catalog.
        connection.execute("SET work_mem = '64MB'")
        measures |= sizes(connection, options["rows"])
        place.enter()
        place.end_request()
        before = resident_mb()
        records = []
        for scenario in SCALE_SCENARIOS:
            progress(scenario.name)
            records += list(measured(place, connection, scenario, iterations, warmup))
        progress("facets, suggestions, keywords")
        measures |= extras(place, connection, iterations)
        measures["memory of the process, more behind all searches"] = value(resident_mb() - before, "MB")
        progress("vacuum")
        measures |= vacuumed(place, connection)
    place.close()
    return {"measures": measures, "queries": records}


def opened(options: dict[str, Any], name: str) -> PloneSite:
    """Open the database in this process."""
    folder = Path(options["folder"]) / name
    folder.mkdir()
    load_zope(folder)
    return PloneSite(BACKENDS[OURS], options["dsn"], folder, options["cache_size"])


def fill(options: dict[str, Any], rows_class: type[SiteRows] = SiteRows) -> Measures:
    """Create a site with *options* ``rows`` of *rows_class* in its catalog, by a real rebuild; return its costs."""
    place, count = opened(options, "filling"), options["rows"]
    make_application(place.db)
    make_site(place)
    site = place.enter()
    site.portal_workflow.setDefaultChain("simple_publication_workflow")
    site.invokeFactory("Folder", REAL, title="Real objects")
    catalog, real = site.portal_catalog, site[REAL]
    examples = {}
    for kind in (*TYPES, "Folder"):
        id = real.invokeFactory(kind, kind.lower().replace(" ", "-"), title=f"A {kind}")
        transaction.savepoint()
        examples[kind] = fresh_entry(catalog, f"/{SITE}/{REAL}/{id}", real[id])
    transaction.commit()
    with psycopg.connect(options["dsn"], autocommit=True) as connection:
        [(first,)] = connection.execute("SELECT nextval('zoid_seq')").fetchall()
        connection.execute("SELECT setval('zoid_seq', %s)", [first + count])
    rows = rows_class(catalog, Tree(f"/{SITE}", folders(count), ()), examples, count)
    rebuild = Rebuild(catalog)
    rebuild.worker = MadeRows(catalog, rebuild.connection, rows.entries(first))
    before, started = resident_mb(), perf_counter()
    for _ in rebuild.steps():
        pass
    seconds, grown = perf_counter() - started, resident_mb() - before
    rebuild.close()
    place.end_request()
    place.close()
    return {
        "rebuild: rows in a second, without taking them from objects": value(count / seconds, "rows/s"),
        "rebuild: memory of the process, more at the end": value(grown, "MB"),
    }


def measured(place: PloneSite, connection: Any, scenario: Scenario, iterations: int, warmup: int) -> Iterator[Any]:
    """Yield a record for each touch: with other values each time, in separate requests, uncached."""
    found = place.request(scenario.anonymous)(**scenario.query(place.place, 0)).actual_result_count
    for touch, use in TOUCHES.items():
        times = queries.run(place, scenario, touch, "varying", "request", iterations, warmup)
        catalog = place.request(scenario.anonymous)
        place.forget_results()
        query = scenario.query(place.place, 1)
        pages = effort(connection, lambda use=use, catalog=catalog, query=query: use(catalog(**query)))
        record = {"scenario": scenario.name, "touch": touch, "values": "varying", "state": "request"}
        yield record | {"found": found, "limited": scenario.limited, "pages": pages} | summary(times)


@contextmanager
def noted() -> Iterator[list[Statement]]:
    """Yield a list to which each statement of a search is appended."""
    from plone.pgcatalog.database.session import Session

    sent: list[Statement] = []
    original = Session.query_all

    def query_all(self: Any, reads: Any) -> Any:
        sent.extend(statement for statement, _ in reads)
        return original(self, reads)

    Session.query_all = query_all  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Session.query_all = original  # type: ignore[method-assign]


def effort(connection: Any, action: Callable[[], object]) -> int:
    """Return the number of 8 kB pages that PostgreSQL reads for the statements of *action*."""
    with noted() as sent:
        action()
    plans = [plan.explain_json(connection, statement)["Plan"] for statement in sent]
    return int(sum(top["Shared Hit Blocks"] + top["Shared Read Blocks"] for top in plans))


def pages_of_a_count(place: PloneSite, connection: Any) -> int:
    """Return the number of pages that a count of all published rows reads, as anonymous."""
    catalog = place.request(anonymous=True)
    place.forget_results()
    return effort(connection, lambda: touch_len(catalog(review_state="published")))


def extras(place: PloneSite, connection: Any, iterations: int) -> Measures:
    """Return the measures other than searches: facets, suggestions, keywords."""

    def misspelled(number: int) -> str:
        return f"{unique_word(number)[:4]}x{unique_word(number)[5:]}"

    actions: dict[str, Callable[[Any, int], object]] = {
        "facets of 5 fields, all rows": lambda catalog, n: catalog().facets(FACETS),
        "facets of 5 fields, a frequent word": lambda c, n: c(SearchableText=word(FREQUENT, n)).facets(FACETS),
        "suggest, two letters typed": lambda catalog, n: catalog.suggest(word(USUAL, n)[:2]),
        "suggest, behind another word": lambda c, n: c.suggest(f"{word(USUAL, n)} {word(USUAL, n + 1)[:3]}"),
        "did you mean, a typo": lambda catalog, n: catalog.did_you_mean(misspelled(n)),
        "uniqueValuesFor('Subject')": lambda catalog, n: catalog.uniqueValuesFor("Subject"),
        "uniqueValues of Subject, with lengths": lambda catalog, n: list(
            catalog.Indexes["Subject"].uniqueValues(None, 1)
        ),
        "25 rows behind the first 10,000, by slice": lambda catalog, n: [
            brain.Title for brain in catalog(portal_type="Document", sort_on="created")[10_000:10_025]
        ],
    }
    measures = {}
    for name, action in actions.items():
        measures[name] = summary([timed(action, uncached(place), n) for n in range(iterations)])
        catalog = uncached(place)
        read = effort(connection, lambda action=action, catalog=catalog: action(catalog, iterations + 1))
        measures[f"{name}: pages read"] = value(read, "pages")
    return measures


def sizes(connection: Any, rows: int) -> Measures:
    """Return the sizes of the catalog's table, of each of its indexes, and of other parts that grow with the site."""
    [(table,)] = connection.execute(RELATION).fetchall()
    megabytes = {name: size / 2**20 for name, size in connection.execute(SIZES)}
    parts = {
        "its SQL indexes": f"{table}_",
        "its words": ("pgcatalog_words", "pgcatalog_spellings"),
        "its lists by number": "pgcatalog_sets",
        "its counts of values": "pgcatalog_count",
    }
    sums = {
        part: sum(size for name, size in megabytes.items() if name.startswith(prefix)) for part, prefix in parts.items()
    }
    sums = {"its table, texts included": megabytes[table], **sums}
    measures = {"size: the catalog, a row": value(sum(sums.values()) * 2**20 / rows, "bytes")}
    measures |= {f"size: {part}": value(size, "MB") for part, size in sums.items()}
    for name, size in sorted(megabytes.items(), key=lambda item: -item[1]):
        if name.startswith(f"{table}_"):
            measures[f"size: index {name.removeprefix(f'{table}_')}"] = value(size, "MB")
    return measures


def vacuumed(place: PloneSite, connection: Any) -> Measures:
    """Change a third of the rows; return the cost of VACUUM, and the pages that a count reads before and after."""
    [(table,)] = connection.execute(RELATION).fetchall()
    connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    measures = {"pages read by a count, all visible": value(pages_of_a_count(place, connection), "pages")}
    connection.execute(f"UPDATE {table} SET modified = modified + interval '1 minute' WHERE rid % 3 = 0")
    measures["pages read by a count, a third changed"] = value(pages_of_a_count(place, connection), "pages")
    vacuum = f"VACUUM (ANALYZE) {table}"
    measures["VACUUM ANALYZE after it"] = value(timed(connection.execute, vacuum), "s")
    measures["pages read by a count, vacuumed"] = value(pages_of_a_count(place, connection), "pages")
    connection.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")
    return measures
