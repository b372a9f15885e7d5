"""What the tab *Advanced* has done in the background: rebuild, verify, repair."""

from contextlib import closing
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_helpers import default_workers
from plone.pgcatalog.indexing.rebuild_helpers import helpers
from plone.pgcatalog.indexing.rebuild_helpers import own_zope_conf
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.zmi.jobs import Report


#: So many differences are named; the others are counted.
NAMED = 20


def rebuild(tool: CatalogTool, report: Report, skip_broken: bool = False) -> str:
    """Rebuild the catalog *tool* beside the live one, or resume an interrupted rebuild."""
    runner = Rebuild(tool, skip_broken)
    zope_conf = own_zope_conf()
    site = "/".join(tool.getPhysicalPath()[1:-1])
    count = default_workers(len(tool)) - 1 if zope_conf else 0
    with closing(runner), closing(runner.steps()) as steps, helpers(count, zope_conf or "", site, skip_broken):
        for target in steps:
            report(target.done, target.total, PHASES[target.phase])
    return f"{target.done:,} objects catalogued."


def verify(tool: CatalogTool, report: Report, repair: bool = False) -> str:
    """Compare the catalog *tool* with the content, and mend what differs when *repair* says so."""
    total = len(tool)
    verifier = Verifier(tool, lambda done: report(done, total, "Comparing"))
    found = list(verifier.differences())
    if repair:
        verifier.mend(found, lambda done: report(done, len(found), "Mending"))
    lines = [str(difference) for difference in found[:NAMED]]
    if len(found) > NAMED:
        lines.append(f"… and {len(found) - NAMED:,} more")
    left = sum(not difference.can_be_mended for difference in found)
    done = "found" if not repair else f"mended, {left:,} left" if left else "mended"
    count = len(found) - left if repair else len(found)
    return "\n".join([f"{verifier.checked:,} objects compared, {count:,} differences {done}.", *lines])
