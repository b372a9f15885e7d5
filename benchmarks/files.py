"""Worker of ``files``: saves, renames, copies and finds a PDF; then uploads many, some of them during searches.

For Plone's own catalog it requires ``pdftotext`` (poppler-utils), which converts a PDF during the save.
"""

from benchmarks.backends import BACKENDS
from benchmarks.backends import open_db
from benchmarks.backends import OURS
from benchmarks.texts import text
from benchmarks.texts import WEIGHTS
from benchmarks.texts import WORDS
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import begin
from benchmarks.zope_site import end
from benchmarks.zope_site import login
from benchmarks.zope_site import make_site
from benchmarks.zope_site import opened
from benchmarks.zope_site import PloneSite
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from demo.documents import blob
from demo.documents import pdf_of
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from random import uniform
from statistics import quantiles
from tests.integration.site import load_zope
from time import monotonic
from time import sleep
from typing import Any
from typing import Protocol
from ZODB.POSException import ConflictError

import psutil
import psycopg
import shutil
import threading
import transaction


#: Lines on a page, and words in a line.
LINES, WORDS_OF_A_LINE = 30, 9
#: Bytes and pages of the file that is saved, renamed and copied; pages of the other files.
LARGE, PAGES, FEW_PAGES = 5 << 20, 200, 20
#: Number of threads that save at the same time, and that search meanwhile.
SAVERS, VISITORS = 4, 2
#: Attempts of Zope for a conflicting request.
ATTEMPTS = 4
#: Seconds after which an idle worker sleeps.
IDLE = 1.0
#: Seconds until a word must be found.
TIMEOUT = 120.0
#: The number of waiting jobs, and the list of all jobs.
WAITING = "SELECT count(*) FROM pgcatalog_queue WHERE due < 'infinity'"
QUEUED = "SELECT kind, subject, attempts, due::text, reason FROM pgcatalog_queue ORDER BY due"


def document(number: int, pages: int, size: int = 0) -> bytes:
    """Return the PDF *number*, with a unique word, and *size* bytes that are not text."""
    random = Random(number)
    texts = ["\n".join(text(random, WORDS_OF_A_LINE) for _ in range(LINES)) for _ in range(pages)]
    texts[-1] += f"\n{word(number)}"
    return pdf_of(texts, random.randbytes(size))


def word(number: int) -> str:
    """Return the unique word of the PDF *number*."""
    return f"zq{number}qz"


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures of one backend.  Raises RuntimeError without pdftotext."""
    if shutil.which("pdftotext") is None:
        raise RuntimeError("stock converts PDFs by pdftotext: install poppler-utils")
    place = opened(options, progress, PloneSite)
    make_site(place)
    bench = Files(place, options, progress)
    bench.single()
    visitors, visitors_elsewhere = InThread(place.db, options, searches_until), InProcess(options, searches_until)
    if options["backend"] == OURS:
        worker = InThread(place.db, options, works_until)
        bench.while_visitors_search("visitors in the same Zope", 5000, visitors, worker)
        worker_elsewhere = InProcess(options, works_until)
        bench.while_visitors_search("the same, worker elsewhere", 6000, visitors, worker_elsewhere)
        bench.while_visitors_search("visitors in another Zope", 7000, visitors_elsewhere, worker_elsewhere)
        bench.until_found(worker)
        bench.many()
    else:
        bench.while_visitors_search("visitors in the same Zope", 5000, visitors)
        bench.while_visitors_search("visitors in another Zope", 7000, visitors_elsewhere)
    place.close()
    return {"measures": bench.measures}


class Files:
    """The measures of one site."""

    def __init__(self, place: Any, options: dict[str, Any], progress: Progress) -> None:
        self.place = place
        self.options = options
        self.progress = progress
        self.is_ours = options["backend"] == OURS
        self.measures: dict[str, Any] = {}

    def single(self) -> None:
        """Measure one large PDF: saved, then renamed, then copied, while no worker runs."""
        times: dict[str, list[float]] = {"save": [], "rename": [], "copy": []}
        for n in range(self.options["iterations"] + 1):
            self.progress(f"a file of 5 MB: {n}")
            data = document(n, PAGES, LARGE)
            saved = timed(self.change, lambda site, n=n, data=data: add(site, f"large-{n}", data))
            self.work()
            renamed = timed(self.change, lambda site, n=n: site.manage_renameObject(f"large-{n}", f"other-{n}"))
            copied = timed(
                self.change, lambda site, n=n: site.manage_pasteObjects(site.manage_copyObjects([f"other-{n}"]))
            )
            self.work()
            self.found(n, 2)
            if n:
                for name, seconds in (("save", saved), ("rename", renamed), ("copy", copied)):
                    times[name].append(seconds)
        for name, seconds_of in times.items():
            self.measures[f"{name} a PDF of 5 MB, 200 pages"] = summary(seconds_of)

    def until_found(self, worker: "Activity") -> None:
        """Measure the seconds from the end of a save until its word is found, with an idle worker; and its memory."""
        before = psutil.Process().memory_info().rss
        times = []
        worker.start()
        sleep(IDLE)
        asleep = psutil.Process().memory_info().rss
        for n in range(1000, 1000 + self.options["iterations"]):
            self.progress(f"until it is found: {n - 1000}")
            data = document(n, PAGES, LARGE)
            self.change(lambda site, n=n, data=data: add(site, f"found-{n}", data))
            times.append(timed(self.wait_for, n))
        after = psutil.Process().memory_info().rss
        worker.stop()
        self.measures["from the end of the save until it is found"] = summary(times, "s")
        self.measures["memory of Zope with a worker that sleeps"] = value((asleep - before) / 2**20, "MB more")
        self.measures["memory of Zope after its worker has found large files"] = value(
            (after - before) / 2**20, "MB more"
        )

    def many(self) -> None:
        """Measure files per second with one worker and with two, and how many files a rebuild extracts again."""
        first = 10_000
        for workers in (1, 2):
            self.progress(f"many files, {workers} workers")
            count = self.options["files"]
            for n in range(first, first + count):
                self.change(lambda site, n=n: add(site, f"many-{n}", document(n, FEW_PAGES)))
            with ThreadPoolExecutor(workers) as pool:
                seconds = timed(lambda: [f.result() for f in [pool.submit(self.drain) for _ in range(workers)]])  # noqa: B023
            name = f"PDFs of 20 pages, {workers} worker{'s' if workers > 1 else ''}"
            self.measures[name] = value(count / seconds, "files a second")
            self.work()
            self.found(first + count - 1, 1)
            first += count
        before = self.extracted()
        self.progress("rebuild")
        self.measures["rebuild"] = summary([timed(self.change, rebuild)], "s")
        self.work()
        self.found(first - 1, 1)
        self.measures["extracted once more after a rebuild"] = value(len(self.extracted() - before), "files")

    def while_visitors_search(
        self, case: str, first: int, visitors: "Activity", worker: "Activity | None" = None
    ) -> None:
        """Measure searches of *visitors* before and during simultaneous uploads; conflicts, and losses."""
        count = self.options["uploads"]
        self.progress(case)
        documents = {n: document(n, FEW_PAGES) for n in range(first, first + count)}
        visitors.start()
        sleep(self.options["seconds"])
        before = visitors.stop()
        if worker is not None:
            worker.start()
        with ThreadPoolExecutor(SAVERS) as pool:
            visitors.start()
            started = monotonic()
            conflicts = dict(zip(documents, pool.map(lambda item: self.upload(*item), documents.items()), strict=True))
            elapsed = monotonic() - started
            during = visitors.stop()
        if worker is not None:
            worker.stop()
        self.work()
        missing = [n for n, times in conflicts.items() if times < ATTEMPTS and self.hits(n) != 1]
        if missing:
            self.progress(f"{word(missing[0])} is not found; {self.queued()}")
        refused = list(conflicts.values()).count(ATTEMPTS)
        for name, number, unit in (
            ("a search, p95 before", p95(before) * 1e3, "ms"),
            (f"a search, p95 during {count} uploads", p95(during) * 1e3, "ms"),
            (f"{count} uploads", elapsed, "s"),
            ("conflicts", sum(conflicts.values()), ""),
            ("uploads refused with a message, after a conflict in each attempt", refused, ""),
            ("uploads acknowledged, and not found once in the end", len(missing), ""),
        ):
            self.measures[f"{case}: {name}"] = value(number, unit)

    # -- parts

    def change(self, action: Callable[[Any], Any]) -> None:
        """Call *action* with the site, and commit."""
        app, site = begin(self.place.db)
        try:
            login(app)
            action(site)
            transaction.commit()
        finally:
            end(app)

    def upload(self, number: int, data: bytes) -> int:
        """Save the PDF *number*; return the number of conflicts: with ATTEMPTS conflicts the file is not saved."""
        for conflicts in range(ATTEMPTS):
            try:
                self.change(lambda site: add(site, f"upload-{number}", data))
            except ConflictError:
                sleep(uniform(0, 2**conflicts))  # as Zope does
                continue
            return conflicts
        return ATTEMPTS

    def hits(self, number: int) -> int:
        """Return the number of objects with the word of the PDF *number*."""
        app, site = begin(self.place.db)
        try:
            return len(site.portal_catalog.unrestrictedSearchResults(SearchableText=word(number)))
        finally:
            end(app)

    def found(self, number: int, count: int | None) -> None:
        """Raise RuntimeError if the word of the PDF *number* is found in another number of objects than *count*."""
        if count is not None and (hits := self.hits(number)) != count:
            raise RuntimeError(f"{word(number)} is found {hits} times, not {count}; {self.queued()}")

    def wait_for(self, number: int) -> None:
        deadline = monotonic() + TIMEOUT
        while not self.hits(number):
            if monotonic() > deadline:
                raise RuntimeError(f"{word(number)} is not found after {TIMEOUT} seconds; {self.queued()}")
            sleep(0.02)

    def drain(self) -> int:
        """Do all waiting jobs, as a worker does."""
        from plone.pgcatalog.queue.worker import Worker

        return Worker(self.place.db, self.options["dsn"]).run_until_empty()

    def work(self) -> None:
        """Do all waiting jobs, including jobs that were postponed by a conflict."""
        if not self.is_ours:
            return
        deadline = monotonic() + TIMEOUT
        with ThreadPoolExecutor(1) as pool, psycopg.connect(self.options["dsn"], autocommit=True) as connection:
            while True:
                pool.submit(self.drain).result()
                [(waiting,)] = connection.execute(WAITING).fetchall()
                if not waiting or monotonic() > deadline:
                    return
                sleep(IDLE)

    def queued(self) -> str:
        """Return a description of the waiting and failed jobs in the queue."""
        if not self.is_ours:
            return "stock has no queue"
        with psycopg.connect(self.options["dsn"]) as connection:
            rows = connection.execute(QUEUED).fetchall()
        return f"the queue has {len(rows)} jobs (kind, object, attempts, due, reason): {rows[:20]}"

    def extracted(self) -> set[Any]:
        """Return (digest, time of extraction) of each text."""
        with psycopg.connect(self.options["dsn"]) as connection:
            return set(connection.execute("SELECT digest, extracted_at FROM pgcatalog_file_texts").fetchall())


#: Runs with (function that returns True at the end, database, its DSN); returns the seconds of each search.
type ActivityFunction = Callable[[Callable[[], bool], Any, str], list[float]]


class Activity(Protocol):
    """An activity beside the uploads."""

    def start(self) -> None:
        """Start it."""

    def stop(self) -> list[float]:
        """End it; return the seconds of each search since the start."""


class InThread:
    """An activity in threads of the Zope that receives the uploads."""

    def __init__(self, db: Any, options: dict[str, Any], function: ActivityFunction) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.ended = threading.Event()
        self.function = partial(function, self.ended.is_set, db, options["dsn"])

    def start(self) -> None:
        self.ended.clear()
        self.result = self.pool.submit(self.function)

    def stop(self) -> list[float]:
        self.ended.set()
        return self.result.result()


class InProcess:
    """An activity in another Zope."""

    def __init__(self, options: dict[str, Any], function: ActivityFunction) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        context.Process(target=other_zope, args=(options, function, other), daemon=True).start()
        self.pipe.recv()

    def start(self) -> None:
        self.pipe.send("start")

    def stop(self) -> list[float]:
        self.pipe.send("stop")
        return list(self.pipe.recv())


def other_zope(options: dict[str, Any], function: ActivityFunction, pipe: Any) -> None:
    """Run *function* in a separate Zope, on the database of the *options*, from each message of *pipe* until the next one."""
    from Zope2.App.ClassFactory import ClassFactory

    folder = Path(options["folder"]) / function.__name__
    load_zope(folder)
    db = open_db(BACKENDS[options["backend"]], options["dsn"], folder, options["cache_size"])
    db.classFactory = ClassFactory
    pipe.send("ready")
    while pipe.recv():
        seconds = function(pipe.poll, db, options["dsn"])
        pipe.recv()
        pipe.send(seconds)


def works_until(is_over: Callable[[], bool], db: Any, dsn: str) -> list[float]:
    """Run a worker thread, as in a Zope."""
    from plone.pgcatalog.queue.worker import Worker

    worker = Worker(db, dsn)
    thread = threading.Thread(target=worker.run)
    thread.start()
    while not is_over():
        sleep(0.1)
    worker.stop()
    thread.join()
    return []


def searches_until(is_over: Callable[[], bool], db: Any, dsn: str) -> list[float]:
    """Let visitors search *db*, each in a thread, without a pause; return the seconds of each search."""

    def visit(seed: int) -> list[float]:
        random = Random(seed)
        seconds = []
        while not is_over():
            seconds.append(timed(search, db, random.choices(WORDS, cum_weights=WEIGHTS)[0]))
        return seconds

    with ThreadPoolExecutor(VISITORS) as pool:
        return [second for seconds in pool.map(visit, range(VISITORS)) for second in seconds]


def search(db: Any, words: str) -> None:
    """Search like a visitor."""
    app, site = begin(db)
    try:
        login(app, anonymous=True)
        for brain in site.portal_catalog(SearchableText=words, sort_on="modified", b_size=20)[:20]:
            brain.Title  # noqa: B018  a page shows it
    finally:
        end(app)


def p95(seconds: list[float]) -> float:
    """Return the 95th percentile of *seconds*."""
    return quantiles(seconds, n=20, method="inclusive")[-1]


def add(site: Any, name: str, data: bytes) -> None:
    site.invokeFactory("File", name, title=name, file=blob(data))


def rebuild(site: Any) -> None:
    site.portal_catalog.clearFindAndRebuild()
