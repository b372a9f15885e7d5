"""Worker of ``level2`` and ``plone``: a real Plone site with the catalog of one backend."""

from benchmarks import queries
from benchmarks.backends import database_mb
from benchmarks.backends import vacuum
from benchmarks.content import Author
from benchmarks.content import fill
from benchmarks.content import make_folders
from benchmarks.content import modify
from benchmarks.documents import documents
from benchmarks.documents import folders
from benchmarks.kept import filled
from benchmarks.machine import resident_mb
from benchmarks.scenarios import chosen
from benchmarks.scenarios import PAGE
from benchmarks.scenarios import Place
from benchmarks.texts import folder_titles
from benchmarks.timing import profiled
from benchmarks.timing import repeated
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import make_site
from benchmarks.zope_site import opened
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from itertools import batched
from itertools import islice
from typing import Any

import os
import transaction


#: Number of documents that are created through Plone, one commit each; further ones are filled in.
REAL = 500
#: Number of them in one turn.
BATCH = 20
#: Number of modified documents.
CHANGES = 100
#: Number of documents created with the catalog switched off, to measure its cost.
UNCATALOGUED = 30
UIDS = 200


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures and the query records of one backend."""
    if options.get("profile"):
        # Otherwise the thread that records slow queries would be in the profile.
        os.environ["PGCATALOG_SLOW_QUERY_MS"] = "1000000"
    sizes = options.get("cache_sizes") or [options["cache_size"]]
    place = opened({"cache_size": sizes[0], **options}, progress, PloneSite)
    measures = filled(place, options, progress, lambda: made(place, options["docs"], progress))
    measures |= content(place, options["docs"], progress)
    result: dict[str, Any] = {"measures": measures}
    scenarios = chosen(options.get("scenarios", ()))
    vacuum(options["dsn"])
    if options.get("queries", True):
        place.write = modify_at(options["docs"])
        counts = options["iterations"], options["warmup"]
        with profiled(options.get("profile", False)) as (call, report):

            def timed_call(action: Any, *arguments: Any) -> float:
                return timed(call, action, *arguments)

            result["queries"] = queries.measure(place, scenarios, *counts, progress, call=timed_call)
            for size in sizes[1:]:
                place.use_cache(size)
                states = queries.IN_MEMORY
                result["queries"] += queries.measure(place, scenarios, *counts, progress, states, timed_call)
        result["profile"] = report()
        place.use_cache(sizes[0])
        measures |= objects_and_values(place, options["iterations"], progress)
        measures["resident memory"] = value(resident_mb(), "MB")
        measures["database size"] = value(database_mb(options["dsn"]), "MB")
    else:
        measures |= catalog_query(place, options["iterations"])
    if options.get("rebuild"):
        progress("rebuilding the catalog")
        measures |= rebuild(place, options["rebuild"])
    progress("the same without a catalog")
    measures |= uncatalogued(place, options["docs"])
    place.close()
    return result


def made(place: PloneSite, count: int, progress: Progress) -> dict[str, Any]:
    """Create a site for *count* documents with all but the last REAL ones; return its costs."""
    measures = {"site creation": value(timed(make_site, place), "s")}
    make_folders(place, folder_titles(count))
    if number := max(0, count - REAL):
        fill(place, islice(documents(count), number), number, progress)
    return measures


def content(place: PloneSite, count: int, progress: Progress) -> dict[str, Any]:
    """Create the last of *count* documents; return the costs of these, and of modifications."""
    begin = max(0, count - REAL)
    author = Author(place)
    for batch in batched(islice(documents(count), begin, count), BATCH):
        progress("creating documents")
        for document in batch:
            author.create(document)
    measures = author.measures()
    changes = []
    for batch in batched(islice(documents(count), begin, begin + CHANGES), BATCH):
        progress("modifying documents")
        changes += [modify_once(place, document) for document in batch]
    measures["modification of a document"] = summary(changes)
    place.end_request()
    site = place.enter()
    brains = site.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="created", sort_limit=UIDS)
    place.place = Place(f"/{SITE}", folders(count), [brain.UID for brain in brains[:UIDS]])
    place.end_request()
    return measures


def modify_once(place: PloneSite, document: Any) -> float:
    """Return the seconds for changing one document in a separate request, commit included."""
    place.end_request()
    site = place.enter()
    return timed(modify, site, document)


def modify_at(count: int) -> Any:
    """Return a function that changes the n-th of *count* documents."""
    sample = list(islice(documents(count), 100))
    return lambda site, n: modify(site, sample[n % len(sample)])


def objects_and_values(place: PloneSite, iterations: int, progress: Progress) -> dict[str, Any]:
    """Return the figures of uniqueValuesFor and of getObject over a page."""
    unique, again, objects = [], [], []
    pages = max(1, len(place.request()) // PAGE)
    for n in range(iterations):
        if n % BATCH == 0:
            progress("values and objects")
        catalog = place.request()
        place.forget_results()
        unique.append(timed(catalog.uniqueValuesFor, "Subject"))
        again.append(timed(catalog.uniqueValuesFor, "Subject"))
        results = place.request()(portal_type="Document", sort_on="created", b_start=n % pages * PAGE, b_size=PAGE)
        objects.append(timed(lambda: [brain.getObject().title for brain in results[:PAGE]]))  # noqa: B023
    cold = []
    for _ in range(max(3, iterations // 5)):
        results = place.cold(False)(portal_type="Document", sort_on="created", b_size=PAGE)
        cold.append(timed(lambda: [brain.getObject().title for brain in results[:PAGE]]))  # noqa: B023
    return {
        "uniqueValuesFor, first time": summary(unique),
        "uniqueValuesFor, repeated": summary(again),
        "getObject over a page": summary(objects),
        "getObject over a page, cold": summary(cold),
    }


def catalog_query(place: PloneSite, iterations: int) -> dict[str, Any]:
    """Return the figures of the one query in the storage's table."""
    catalog = place.request()
    times = repeated(lambda n: len(catalog(portal_type="Document")), iterations, 1)
    return {"catalog query": summary(times, "us")}


def rebuild(place: PloneSite, times: int) -> dict[str, Any]:
    """Return the figures of rebuilding the whole catalog, commit included."""
    seconds = []
    for _ in range(times):
        catalog = place.request()
        seconds.append(timed(rebuild_once, catalog))
        count = len(catalog)
    result = summary(seconds, "s")
    per_object = summary([each / max(count, 1) for each in seconds])
    return {"rebuild": result, "rebuild, per object": per_object}


def rebuild_once(catalog: Any) -> None:
    catalog.clearFindAndRebuild()
    transaction.commit()


def uncatalogued(place: PloneSite, count: int) -> dict[str, Any]:
    """Return the figures of creating documents on the same storage without a catalog."""
    author = Author(place, catalogued=False)
    for document in islice(documents(count + UNCATALOGUED, count), count, None):
        author.create(document)
    names = {
        "creation of a document": "creation without a catalog",
        "store() calls per document": "store() calls without a catalog",
    }
    return {names[name]: figures for name, figures in author.measures().items() if name in names}
