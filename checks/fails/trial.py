"""Each message of an operation fails once: before it is sent, and after it was done; then all is checked."""

from checks.fails.operations import AFTER
from checks.fails.operations import BEFORE
from checks.fails.operations import fill
from checks.fails.operations import Operation
from checks.fails.operations import Place
from checks.fails.relay import Failure
from checks.fails.relay import Message
from checks.fails.relay import Relay
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.database import counts
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration import site as sites
from tests.integration.checking import check
from tests.integration.uploads import AsIs
from tests.integration.uploads import extracting
from tests.integration.web import MANAGER
from typing import Any
from unittest.mock import patch

import itertools
import psycopg
import transaction


TEMPLATE = "template"
#: Undisturbed runs until caches are full and statements prepared, and attempts until an operation sends a message again.
WARM_UPS, ATTEMPTS = 2, 3
#: Beginnings of statements that write (a commit of the storage, a pack), and the characters of a message that are shown.
WRITES = ("INSERT INTO transaction_log", "DELETE")
SHOWN = 70
#: Connections of the Zope, and seconds until it waits for one in vain: a lost slot is noticed.
POOL = {"pool_max_size": 4, "pool_timeout": 5}
_numbers = itertools.count(1)
_databases = itertools.count(1)


@dataclass
class Result:
    """The outcome of an operation whose message *message* fails; ``wrong`` are the violations.

    ``has_failed`` is False if the operation has not sent that message.
    """

    operation: str
    message: Message | None = None
    failure: Failure = Failure.BEFORE
    has_failed: bool = False
    outcome: str = ""
    state: str = ""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text, turn = self.message or ("", 0)
        outcome = f"{self.outcome}, {self.state}" if self.has_failed or not self.message else "not sent again"
        found = f"{self.operation}: {self.failure}, {turn}. {text[:SHOWN]}: {outcome}"
        return "; ".join([found, *(f"WRONG: {line}" for line in self.wrong)])


def make_template(server: EmbeddedPostgres) -> None:
    """Create the site that each operation starts with.  Zope must be loaded."""
    dsn = server.createdb(TEMPLATE)
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        fill(portal)
        transaction.commit()


@contextmanager
def place_of(server: EmbeddedPostgres, relay: Relay, keeps_history: bool) -> Iterator[tuple[Place, Any]]:
    """Yield (a Zope whose messages pass *relay*, the ZODB.DB of another process without it) on a new site."""
    from ZPublisher.HTTPRequest import HTTPRequest

    name = f"fails{next(_databases)}"
    direct, history = server.createdb(name, TEMPLATE), {"history_preserving": keeps_history}
    with (
        # Zope would wait for some seconds before each repetition.
        patch.multiple(HTTPRequest, delay_retry=lambda self: None, retry_max_count=3),
        extracting(AsIs()),
        sites.opened(direct, **history) as other,
        sites.opened(relay.dsn(name), **POOL, **history) as db,
    ):
        yield Place(db, direct), other
    server.dropdb(name)


def trials(server: EmbeddedPostgres, relay: Relay, operation: Operation, most: int = 0) -> Iterator[Result]:
    """Yield the results of *operation*, of each of its messages; of *most* around its COMMIT, if *most* is not 0.

    The messages are those of two undisturbed runs: an operation may have others after a lost connection, and each n-th time.
    Raises RuntimeError for an undisturbed run with a violation.
    """
    with place_of(server, relay, operation.keeps_history) as (place, other):
        messages: dict[Message, None] = {}
        for number in range(WARM_UPS + 2):
            if (result := trial(place, other, relay, operation, Result(operation.name))).wrong:
                raise RuntimeError(f"without a failure: {result}")
            if number >= WARM_UPS:
                messages |= dict.fromkeys(relay.messages)
        for message in nearest(list(messages), most):
            for failure in Failure:
                for _ in range(ATTEMPTS):
                    result = trial(place, other, relay, operation, Result(operation.name, message, failure))
                    if result.has_failed or result.wrong:
                        break
                yield result


def nearest(messages: Sequence[Message], most: int) -> Sequence[Message]:
    """Return the *most* messages nearest to the COMMIT of the first write, in their order; all if *most* is 0."""
    texts = [message.text for message in messages]
    first = next((texts.index(text) for begin in WRITES for text in texts if text.startswith(begin)), 0)
    commit = next((number for number in range(first, len(texts)) if texts[number] == "COMMIT"), first)
    near = sorted(range(len(messages)), key=lambda number: abs(number - commit))[: most or None]
    return [messages[number] for number in sorted(near)]


def trial(place: Place, other: Any, relay: Relay, operation: Operation, result: Result) -> Result:
    """Do *operation* once, while a message fails; fill and return *result*."""
    number = next(_numbers)
    operation.prepare(place, number)
    relay.arm(result.message, result.failure)
    acknowledged = False
    try:
        operation.do(place, number)
        result.outcome, acknowledged = "acknowledged", True
    except Exception as error:  # noqa: BLE001  whatever it is, all must be as before or after
        result.outcome = f"{type(error).__name__} {error}".strip().splitlines()[0][:100]
    finally:
        relay.disarm()
        result.has_failed = relay.has_failed
        with suppress(psycopg.OperationalError):
            operation.close()
    if result.outcome.startswith("Refused 4"):
        result.wrong.append("not to be repeated")
    result.wrong += next_request(place, number)
    result.state = state(other, place, operation, number)
    if result.state not in ((AFTER,) if acknowledged and operation.acknowledges else (BEFORE, AFTER)):
        result.wrong.append(f"acknowledged: {acknowledged}, found: {result.state}")
    if (seen := state(place.db, place, operation, number)) != result.state:
        result.wrong.append(f"this process sees {seen}")
    operation.recover(place, number)
    if not operation.acknowledges and (later := state(other, place, operation, number)) != AFTER:
        result.wrong.append(f"later {later}")
    result.wrong += sound(other, place)
    return result


def state(db: Any, place: Place, operation: Operation, number: int) -> str:
    with sites.inside(db) as portal:
        return operation.state(place, portal, number)


def next_request(place: Place, number: int) -> Iterator[str]:
    """Yield a line for each request to the same process that does not work."""
    word = f"otherword{number}"
    saved = place.web.patch("/plone/other", MANAGER, {"title": word})
    if saved.status != 204:
        yield f"the next save: {saved.status} {saved.text[:200]}"
    found = place.web.get("/plone/@search", MANAGER, accept="application/json", Title=word)
    if found.status != 200 or [item["title"] for item in found.json["items"]] != [word]:
        yield f"the next search: {found.status} {found.text[:200]}"


def sound(db: Any, place: Place) -> Iterator[str]:
    """Yield the faults of catalog, counts, content and connections, as another process sees them."""
    with sites.inside(db) as portal:
        yield from map(str, Verifier(portal.portal_catalog).differences())
    with psycopg.connect(place.direct, autocommit=True) as connection, connection.cursor() as cursor:
        for (relation,) in cursor.execute("SELECT relation FROM pgcatalog_state").fetchall():
            if different := counts.differences(cursor, relation):
                yield f"{different} counts differ"
    yield from (f"{finding['subject']}: {finding['text']}" for finding in check(place.direct))
    # Three threads: this one, of the requests, of the operation.
    stats = place.db.storage._instance_pool.get_stats()
    if stats["pool_size"] - stats["pool_available"] > POOL["pool_max_size"] - 1:
        yield f"connections are not returned: {stats}"
