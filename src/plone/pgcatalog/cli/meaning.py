"""``pgcatalog meaning``: the vectors of a site's pages."""

from plone.pgcatalog.cli.files import queue_result
from plone.pgcatalog.cli.files import shows_queue
from plone.pgcatalog.cli.files import watch
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning import table
from plone.pgcatalog.meaning.job import KIND
from plone.pgcatalog.meaning.job import put_all
from plone.pgcatalog.queue import table as queue
from plone.pgcatalog.storage import writable_dsn_of


@shows_queue(
    "Put a job for every page; the embedder is sent only what it has not seen.",
    "Try the pages again that the embedder has refused.",
)
def meaning(zope_conf: str, site: str, backfill: bool, repeat: bool, wait: bool) -> Result:
    """Show which models a site has vectors of, how many pages wait, and which have none, and why.

    Exit code 0: no page failed; 1: some did, or the site has no embedder; 2: the site cannot be opened.
    """
    with open_site(zope_conf, site) as portal:
        core = portal.portal_catalog._core
        catalog, dsn, embedder = core.zoid, writable_dsn_of(core.jar), table.embedder_of(core.tool)
    if embedder is None:
        return Result({"embedder": None}, ["no embedder: its URL is a setting of the site"], 1)
    lines = [f"embedder {embedder.url}, model {embedder.model or 'without a name'}"]
    with connect(dsn, "meaning", 0) as connection:
        if backfill:
            lines.append(f"{put_all(connection, catalog)} pages were put into the queue")
        if repeat:
            lines.append(f"{queue.repeat(connection, catalog, KIND)} pages are tried again")
        if wait:
            watch(connection, catalog, KIND, "Pages")
        tables = table.read(connection, catalog)
        answers = table.answering(tables)
        lines += [
            f"{vectors.name}: {vectors.answers_as or vectors.embedder.model}, {vectors.dimension} dimensions,"
            f" {max(vectors.chunks, 0)} chunks{', answers' if vectors is answers else ', being filled'}"
            for vectors in tables
        ]
        about = [vectors.about | {"name": vectors.name} for vectors in tables]
        return queue_result(connection, catalog, KIND, "failed", lines, tables=about)
