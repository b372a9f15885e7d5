"""Worker of ``scale``: a catalog as large as a site may get, filled as a rebuild fills it; what it answers, and costs."""

from AccessControl.SecurityManagement import newSecurityManager
from benchmarks import queries
from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.machine import resident_mb
from benchmarks.scale_copies import multiply
from benchmarks.scale_copies import vacuumed_after_few
from benchmarks.scale_costs import changes
from benchmarks.scale_costs import connected
from benchmarks.scale_costs import sizes
from benchmarks.scale_costs import vacuumed
from benchmarks.scale_fill import fill
from benchmarks.scale_parallel import parallel
from benchmarks.scale_parallel import statements_of
from benchmarks.scale_rows import folders
from benchmarks.scale_rows import own_word
from benchmarks.scale_rows import Tree
from benchmarks.scenarios import PAGE
from benchmarks.scenarios import Place
from benchmarks.scenarios import Scenario
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios import shown
from benchmarks.scenarios import touch_len
from benchmarks.scenarios import touch_page
from benchmarks.scenarios import TOUCHES
from benchmarks.text_search import uncached
from benchmarks.texts import FREQUENT
from benchmarks.texts import RARE
from benchmarks.texts import USUAL
from benchmarks.texts import WORDS
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.observe import plan
from plone.pgcatalog.sql.expression import Statement
from tests.integration.site import load_zope
from typing import Any

import psycopg
import time


UIDS = 200
MEMBER = "author3"
FACETS = ("portal_type", "review_state", "Creator", "Subject", "is_folderish")
#: A place far behind in a result, and up to where a result may be counted.
DEEP = 10_000
#: Those of ``level1``; its words are others.
PLAIN = tuple(scenario for scenario in SCENARIOS if not scenario.name.startswith(("full text", "text ")))


def word(numbers: range, n: int) -> str:
    return WORDS[numbers[n % len(numbers)]]


def deep(place: Place, n: int) -> dict[str, Any]:
    return {"portal_type": "Document", "sort_on": "created", "b_start": DEEP + n % 10 * PAGE, "b_size": PAGE}


MORE = (
    Scenario("section and type", lambda place, n: {"path": place.folder(n % 10), "portal_type": "Document"}),
    Scenario("deep page, by its start", deep, limited=True),
    Scenario("a word of one row", lambda place, n: {"SearchableText": own_word(n)}),
    Scenario("a rare word", lambda place, n: {"SearchableText": word(RARE, n)}),
    Scenario("a usual word", lambda place, n: {"SearchableText": word(USUAL, n)}),
    Scenario("a frequent word", lambda place, n: {"SearchableText": word(FREQUENT, n)}),
    Scenario("two frequent words", lambda p, n: {"SearchableText": f"{word(FREQUENT, n)} {word(FREQUENT, n + 1)}"}),
    Scenario("a frequent word, as anonymous", lambda p, n: {"SearchableText": word(FREQUENT, n)}, anonymous=True),
    Scenario("a usual word and a type", lambda p, n: {"SearchableText": word(USUAL, n), "portal_type": "News Item"}),
    Scenario("a word's beginning", lambda place, n: {"SearchableText": f"{word(USUAL, n)[:4]}*"}),
)
#: Asked by a member, who sees what is published, and his own.
OF_MEMBERS = (
    Scenario("all, as a member", lambda place, n: {"sort_on": "modified", "sort_order": "reverse"}),
    Scenario("private, as a member", lambda place, n: {"review_state": "private", "portal_type": "Document"}),
    Scenario("a frequent word, as a member", lambda place, n: {"SearchableText": word(FREQUENT, n)}),
)
#: What is run with and without parallel workers; of the other scenarios there is the plan.
PARALLEL = (
    "simple field match, count",
    "keyword, any of three, count",
    "a frequent word, count",
    "a frequent word, page",
)
#: All scenarios, and whether a member asks.
GROUPS = ((PLAIN + MORE, False), (OF_MEMBERS, True))


class LargeSite(PloneSite):
    """A site whose requests are the member's, as soon as somebody says so."""

    as_member = False

    def enter(self, anonymous: bool = False) -> Any:
        context = super().enter(anonymous)
        if self.as_member:
            users = context.acl_users
            newSecurityManager(None, users.getUser(MEMBER).__of__(users))
        return context


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the records of the searches, and the measures."""
    measures = filled(options, progress)
    if options.get("copies", 1) > 1:
        measures = multiply(options["dsn"], options["copies"], progress)
    return asked(options, progress, measures)


def asked(options: dict[str, Any], progress: Progress, measures: dict[str, Any]) -> dict[str, Any]:
    """Return the records of the searches in a filled catalog, and the measures besides *measures*."""
    progress("starting Zope")
    place = large_site(options)
    rows, copies = options["rows"], options.get("copies", 1)
    with connected(options["dsn"]) as connection:
        progress("sizes")
        measures |= sizes(connection, rows * copies)
        place.enter()
        place.leave()
        before = resident_mb()
        records = []
        for scenarios, as_member in GROUPS:
            place.as_member = as_member
            for scenario in scenarios:
                progress(scenario.name)
                records += list(measured(place, connection, scenario, options["iterations"], options["warmup"]))
        place.as_member = False
        counting = partial(pages_of_a_count, place, connection)
        if copies == 1:
            progress("facets, suggestions, keywords")
            measures |= extras(place, connection, options["iterations"])
        measures["memory of the process, more behind all searches"] = value(resident_mb() - before, "MB")
        if copies == 1:
            progress("changes")
            measures |= changes(place, connection, 20)
            progress("vacuum")
            measures |= vacuumed(connection, counting)
        else:
            progress("parallel workers")
            statements = statements_of(place, sent_by, PLAIN + MORE, {"count": touch_len, "page": touch_page})
            measures |= parallel(connection, statements, PARALLEL)
            progress("vacuum")
            measures |= vacuumed_after_few(connection, counting)
    place.close()
    return {"measures": measures, "queries": records}


def large_site(options: dict[str, Any]) -> LargeSite:
    """Open the database in this process, which searches."""
    load_zope(Path(options["folder"]))
    place = LargeSite(BACKENDS[OURS], options["dsn"], Path(options["folder"]), options["cache_size"])
    make_member(place)
    uids = [f"{number + 1:032x}" for number in range(UIDS)]
    place.place = Tree(f"/{SITE}", folders(options["rows"]), uids)
    return place


def filled(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Fill the catalog in a process of its own: this one has the memory of who searches."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        filling = pool.submit(fill, options)
        while not filling.done():
            time.sleep(5)
            progress(f"filling, {rows_done(options['dsn'])} of {options['rows']:,} rows")
        return filling.result()


def rows_done(dsn: str) -> str:
    try:
        with psycopg.connect(dsn) as connection:
            rows = connection.execute("SELECT phase, done FROM pgcatalog_rebuild").fetchall()
    except psycopg.errors.UndefinedTable:
        rows = []
    return " ".join(f"{phase}: {done:,}" for phase, done in rows)


def make_member(place: PloneSite) -> None:
    import transaction

    site = place.enter()
    site.acl_users.userFolderAddUser(MEMBER, "secret", ["Member"], [])
    transaction.commit()
    place.leave()


def measured(place: PloneSite, connection: Any, scenario: Scenario, iterations: int, warmup: int) -> Iterator[Any]:
    """Yield a record for each touch: other values each time, each in a request of its own, no answer kept."""
    found = place.request(scenario.anonymous)(**scenario.query(place.place, 0)).actual_result_count
    for touch, use in TOUCHES.items():
        times = queries.run(place, scenario, touch, "varying", "request", iterations, warmup)
        catalog = place.request(scenario.anonymous)
        place.forget_results()
        query = scenario.query(place.place, 1)
        pages, rows = effort(connection, lambda use=use, catalog=catalog, query=query: use(catalog(**query)))
        record = {"scenario": scenario.name, "touch": touch, "values": "varying", "state": "request"}
        yield record | {"found": found, "limited": scenario.limited, "pages": pages, "rows": rows} | summary(times)


@contextmanager
def noted() -> Iterator[list[Statement]]:
    """Yield a list that grows by each statement that a search sends."""
    from plone.pgcatalog.database.session import Session

    sent: list[Statement] = []
    original = Session.ask_all

    def ask_all(self: Any, asked: Any, with_states: bool = False) -> Any:
        sent.extend(statement for statement, _ in asked)
        return original(self, asked, with_states)

    Session.ask_all = ask_all  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Session.ask_all = original  # type: ignore[method-assign]


def sent_by(action: Callable[[], object]) -> list[Statement]:
    """Return the statements that *action* sends."""
    with noted() as sent:
        action()
    return sent


def effort(connection: Any, action: Callable[[], object]) -> tuple[int, int]:
    """Return how many pages of 8 kB and rows PostgreSQL looks at for the searches of *action*."""
    pages = rows = 0.0
    for statement in sent_by(action):
        top = plan.explain_json(connection, statement)["Plan"]
        pages += top["Shared Hit Blocks"] + top["Shared Read Blocks"]
        rows += plan.rows_read(top)
    return round(pages), round(rows)


def pages_of_a_count(place: PloneSite, connection: Any) -> float:
    """Return the pages that the count of all that is published reads, as anonymous."""
    catalog = place.request(anonymous=True)
    place.forget_results()
    return effort(connection, lambda: touch_len(catalog(review_state="published")))[0]


def counted(results: Any, limit: int) -> int:
    """Return the number of *results*, or *limit* if there are more."""
    results.count_up_to(limit)
    return int(results.actual_result_count)


def extras(place: PloneSite, connection: Any, iterations: int) -> dict[str, Any]:
    """Return what is no search: facets, suggestions, keywords, the rows far behind in a result."""

    def corrected(number: int) -> str:
        found = own_word(number)
        return f"{found[:4]}x{found[5:]}"

    actions: dict[str, Callable[[Any, int], object]] = {
        f"facets of {len(FACETS)} fields, all rows": lambda catalog, n: catalog().facets(FACETS),
        f"facets of {len(FACETS)} fields, a frequent word": lambda catalog, n: catalog(
            SearchableText=word(FREQUENT, n)
        ).facets(FACETS),
        "suggest, two letters typed": lambda catalog, n: catalog.suggest(word(USUAL, n)[:2]),
        "suggest, behind another word": lambda catalog, n: catalog.suggest(
            f"{word(USUAL, n)} {word(USUAL, n + 1)[:3]}"
        ),
        "did you mean, a typo": lambda catalog, n: catalog.did_you_mean(corrected(n)),
        "did you mean, a typo behind a frequent word": lambda catalog, n: catalog.did_you_mean(
            f"{word(FREQUENT, n)} {corrected(n)}"
        ),
        "uniqueValuesFor('Subject')": lambda catalog, n: catalog.uniqueValuesFor("Subject"),
        "a count of a type, up to 10,000": lambda catalog, n: counted(catalog(portal_type="Document"), DEEP),
        "25 rows behind the first 10,000, by slice": lambda catalog, n: shown(
            catalog(portal_type="Document", sort_on="created")[DEEP : DEEP + PAGE]
        ),
    }
    measures = {}
    for name, action in actions.items():
        times = [timed(action, uncached(place), n) for n in range(iterations)]
        catalog = uncached(place)
        measures[name] = summary(times)
        pages, rows = effort(connection, lambda action=action, catalog=catalog: action(catalog, iterations + 1))
        measures[f"{name}: pages read"] = value(pages, "pages")
        measures[f"{name}: rows read"] = value(rows, "rows")
    return measures
