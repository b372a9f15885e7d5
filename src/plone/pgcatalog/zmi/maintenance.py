"""What the tab *Advanced* has done in the background: rebuild, verify, repair, vacuum."""

from contextlib import closing
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import vacuum_analyze
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.rebuild_worker import own_zope_conf
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.observe import jobs
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.zmi.jobs import Report
from psycopg.rows import dict_row


#: So many differences are named; the others are counted.
NAMED = 20


def rebuild(tool: CatalogTool, report: Report, skip_broken: bool = False) -> list[str]:
    """Rebuild the catalog *tool* beside the live one, or resume an interrupted rebuild."""
    runner = Rebuild(tool, skip_broken)
    zope_conf = own_zope_conf()
    site = "/".join(tool.getPhysicalPath()[1:-1])
    count = default_workers(len(tool)) - 1 if zope_conf else 0
    with closing(runner), closing(runner.steps()) as steps, helpers(count, zope_conf or "", site, skip_broken):
        for target in steps:
            report(target.done, target.total, PHASES[target.phase])
    return [jobs.rebuilt(target.done)]


def verify(tool: CatalogTool, report: Report, repair: bool = False) -> list[str]:
    """Compare the catalog *tool* with the content, and mend what differs when *repair* says so."""
    total = len(tool)
    verifier = Verifier(tool, lambda done: report(done, total, _("Comparing")))
    found = list(verifier.differences())
    if repair:
        verifier.mend(found, lambda done: report(done, len(found), _("Mending")))
    lines = [str(difference) for difference in found[:NAMED]]
    if len(found) > NAMED:
        lines.append(_("… and ${number} more", {"number": f"{len(found) - NAMED:,}"}))
    left = sum(not difference.can_be_mended for difference in found)
    return [jobs.compared(verifier.checked, len(found), left if repair else None), *lines]


def vacuum(tool: CatalogTool, report: Report) -> list[str]:
    """Do what ``pgcatalog vacuum`` does, for the table of the catalog *tool* only."""
    catalog = tool._core
    state = catalog.view().read_state()
    with connect_directly(dsn_of(catalog.jar), "vacuum", 0, row_factory=dict_row) as connection:
        report(0, 0, _("Dropping retired tables"))
        dropped = drop_retired(connection.cursor())
        report(0, 0, _("Clearing what is left of objects that no catalog has"))
        cleared = clear_stale(connection)
        if state is not None:
            report(0, 0, "VACUUM ANALYZE")
            vacuum_analyze(connection, state.relation)
            report(0, 0, _("Counting the words of texts"))
            count_words(connection, catalog.zoid)
    return [jobs.vacuumed(len(dropped), cleared)]
