"""A site whose embedder has a built-in table of words with the same meaning."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from plone.app.textfield.value import RichTextValue
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from plone.registry.interfaces import IRegistry
from tests.integration.content import create
from tests.integration.embedders import Answers
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import MODEL
from tests.integration.embedders import serving
from tests.integration.vectors import needs_pgvector
from typing import Any
from zope.component import getUtility
from zope.component.hooks import getSite

import json
import re
import transaction


#: Each line has the words about one thing.
THINGS = (
    "holiday holidays leave vacation urlaub",
    "car cars automobile vehicle wagen",
    "dog dogs hound puppy hund",
    "money salary pay wages gehalt",
    "fire flames burning feuer",
    "boat boats ship schiff",
)
ABOUT = {word: number for number, line in enumerate(THINGS) for word in line.split()}


def about(text: str) -> list[float]:
    """Return the share of *text* about each of THINGS.

    A constant last number prevents a zero vector for other texts.
    """
    counts = [0.0] * len(THINGS) + [0.3]
    for word in re.findall(r"\w+", text.lower()):
        if word in ABOUT:
            counts[ABOUT[word]] += 1
    return counts


def embed(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    data = [{"index": number, "embedding": about(text)} for number, text in enumerate(request["input"])]
    return 200, {}, json.dumps({"model": "things", "data": data}).encode()


def setting(**values: Any) -> None:
    """Store *values* as settings, as the control panel does, in a transaction of its own."""
    registry = getUtility(IRegistry)
    for name, value in values.items():
        registry[f"plone.pgcatalog.{name}"] = value
    transaction.commit()


@contextmanager
def embedder(threshold: float = 0.7, **settings: Any) -> Iterator[Answers]:
    """An embedder about THINGS, in the settings of the current site."""
    needs_pgvector(getSite())
    with serving(embed) as answers:
        setting(embedder_url=answers.url, embedder_model=MODEL, meaning_threshold=threshold, **settings)
        yield answers
    clear_embedder_state()


def fill(portal: Any) -> None:
    """Compute the vectors of everything catalogued."""
    transaction.commit()
    database = portal._p_jar.db()
    dsn = database_dsn(database)
    assert dsn is not None
    with ThreadPoolExecutor(1) as pool:
        pool.submit(Worker(database, dsn).run_until_empty).result()
    transaction.begin()


def page(container: Any, id: str, title: str, text: str = "", **fields: Any) -> Any:
    body = RichTextValue(f"<p>{text}</p>", "text/html", "text/x-html-safe")
    return create(container, "Document", id, title=title, text=body, **fields)
