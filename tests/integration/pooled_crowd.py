"""Run by test_upstream in a process of its own, with or without the patches: a crowd in a site behind a pooler.

Arguments: the DSN of the site through the pooler, and for a patched storage the DSN past it.  Prints JSON.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import create
from transaction.interfaces import TransientError
from typing import Any
from ZODB.POSException import POSError

import json
import psycopg
import random
import sys
import transaction


CROWD = 6
SAVES = 25


def work(db: Any, number: int) -> Counter[str]:
    """Search and save the same few pages repeatedly; return the number of times each outcome occurred."""
    met: Counter[str] = Counter()
    chosen = random.Random(number)
    for turn in range(SAVES):
        try:
            with sites.inside(db) as portal:
                catalog = portal.portal_catalog
                for _ in range(3):
                    assert len(catalog.unrestrictedSearchResults(portal_type="Document")) == 3
                    assert catalog.searchResults(getId="page1", sort_on="modified")[0].getId == "page1"
                page = portal[f"page{chosen.randrange(3)}"]
                page.title = f"Page of {number} in {turn}"
                page.reindexObject()
                assert len(catalog.unrestrictedSearchResults(getId=page.getId())) == 1
                transaction.commit()
            met["commits"] += 1
        except (POSError, psycopg.Error, TransientError) as error:
            met[type(error).__name__] += 1
            transaction.abort()
    return met


def main(dsn: str, *direct: str) -> None:
    sites.start_zope()
    with sites.opened(dsn, **({"direct_dsn": direct[0]} if direct else {})) as db:
        with sites.inside(db) as portal:
            for number in range(3):
                create(portal, "Document", f"page{number}", title="Page")
            transaction.commit()
        with ThreadPoolExecutor(CROWD) as crowd:
            met = sum(crowd.map(lambda number: work(db, number), range(CROWD)), Counter())
        with sites.inside(db) as portal:
            differences = [str(difference) for difference in Verifier(portal.portal_catalog).differences()]
    commits = met.pop("commits", 0)
    print(json.dumps({"commits": commits, "errors": met, "differences": differences}))


if __name__ == "__main__":
    main(*sys.argv[1:])
