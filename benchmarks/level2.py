"""Worker of the level2 benchmark: one backend in one process; prints its figures as one line of JSON."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.demo import site as sites
from plone.pgcatalog.demo.server import Instance
from statistics import median
from statistics import quantiles
from time import perf_counter
from typing import Any

import json
import random
import sys
import transaction


TAGS = [f"tag{number}" for number in range(15)]
PROFILE = "plone.pgcatalog:default"


def figures(seconds: list[float]) -> dict[str, float]:
    """Return median and 95th percentile in milliseconds."""
    return {"median": median(seconds) * 1000, "p95": quantiles(seconds, n=20)[-1] * 1000}


def timed(action: Callable[..., Any], *arguments: Any) -> float:
    started = perf_counter()
    action(*arguments)
    return perf_counter() - started


def create(site: Any, number: int, rng: random.Random) -> None:
    """Create and commit one document with realistic metadata."""
    container = site[f"folder{number % 10}"]
    tags = rng.sample(TAGS, rng.randint(0, 4))
    name = f"doc{number}"
    container.invokeFactory("Document", name, title=f"Document {number} about {' '.join(tags)}", subject=tuple(tags))
    document = container[name]
    document.description = " ".join(rng.choices(TAGS, k=20))
    state = rng.random()
    if state < 0.7:
        site.portal_workflow.doActionFor(document, "publish")
    document.reindexObject()
    transaction.commit()


def modify(site: Any, number: int) -> None:
    document = site[f"folder{number % 10}"][f"doc{number}"]
    document.title = f"{document.title} again"
    document.reindexObject()
    transaction.commit()


def scenarios(path: str) -> dict[str, tuple[dict[str, Any], bool]]:
    """Return name -> (query, as anonymous) of the seeds' six scenarios."""
    return {
        "simple field match": ({"portal_type": "Document"}, False),
        "type+state+subject, newest 20": (
            {
                "portal_type": "Document",
                "review_state": "published",
                "Subject": "tag1",
                "sort_on": "modified",
                "sort_order": "reverse",
                "sort_limit": 20,
            },
            False,
        ),
        "full text": ({"SearchableText": "tag3"}, False),
        "navigation": ({"path": {"query": f"{path}/folder1", "depth": 1}, "sort_on": "sortable_title"}, False),
        "published, anonymous": ({"review_state": "published"}, True),
        "by date, one page": ({"portal_type": "Document", "sort_on": "created", "b_start": 0, "b_size": 25}, False),
    }


def touch(results: Any) -> int:
    return len(results)


def page(results: Any) -> list[Any]:
    return [(brain.Title, brain.getURL(), brain.review_state) for brain in results[:25]]


def measure(site: Any, options: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the figures of all queries, touched as a length and as a page of 25, warm and in a new transaction."""
    found = {}
    for name, (query, anonymous) in scenarios("/".join(site.getPhysicalPath())).items():
        for how in (touch, page):
            for fresh in (False, True):
                times = []
                for number in range(options["warmup"] + options["iterations"]):
                    if fresh:
                        transaction.begin()
                    with sites.acting_as(site, None if anonymous else "admin"):
                        seconds = timed(lambda: how(site.portal_catalog(**query)))  # noqa: B023
                    if number >= options["warmup"]:
                        times.append(seconds)
                label = f"{name}, {'len' if how is touch else 'page'}, {'request' if fresh else 'warm'}"
                found[label] = figures(times)
    return found


def main(options: dict[str, Any]) -> None:
    rng = random.Random(4711)
    app = sites.published(Instance(Path(options["folder"]), options["dsn"]).start())
    app._p_jar._cache.cache_size = options["cache_size"]
    sites.ensure_admin(app)
    sites.become(app, "admin")
    site = sites.make_site(app, today="2026-11-20", objects=0, profile=sites.NO_PROFILE)
    if options["backend"] == "pgcatalog":
        sites.apply_profile(site, PROFILE)
    for number in range(10):
        site.invokeFactory("Folder", f"folder{number}", title=f"Folder {number}")
    transaction.commit()
    result = {"creation of a document": figures([timed(create, site, n, rng) for n in range(options["docs"])])}
    changes = min(options["docs"], 100)
    result["modification of a document"] = figures([timed(modify, site, n) for n in range(changes)])
    result |= measure(site, options)
    sites.leave(app)
    print(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
