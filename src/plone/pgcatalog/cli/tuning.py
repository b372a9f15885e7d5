"""``pgcatalog tuning``: the tuning of a site's search as a text file."""

from pathlib import Path
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.controlpanel.tuning_import import decoded
from plone.pgcatalog.controlpanel.tuning_import import findings
from plone.pgcatalog.controlpanel.tuning_import import import_tuning
from plone.pgcatalog.controlpanel.tuning_import import MOST_BYTES
from plone.pgcatalog.controlpanel.tuning_import import tuning_text
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.i18n import english

import click
import transaction


@click.command()
@click.argument("action", type=click.Choice(["export", "import", "check"]))
@click.argument("zope_conf", type=CONF)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--site", default="Plone", show_default=True, help="Path of the site below the Zope root.")
@prints_result
def tuning(action: str, zope_conf: str, file: Path | None, site: str) -> Result:
    """Export the synonyms, stop words, pinned pages and factors of types as a text file, import or check them.

    Export writes FILE, or prints the text.  Import stores the sections of FILE, all or none.  Check names the lines of FILE, or
    of the saved settings, that cannot be read or cannot have an effect.

    Exit code 0: done; 1: some lines cannot have an effect; 2: the file cannot be read, and nothing was changed.
    """
    if file is None and action == "import":
        raise click.UsageError("import needs a FILE")
    try:
        # Read before Plone is started.
        text = decoded(content_of(file)) if file is not None and action != "export" else None
        with open_site(zope_conf, site) as portal:
            tool = portal.portal_catalog
            text = tuning_text(tool) if text is None else text
            if action == "export":
                return exported(text, file)
            found = findings(tool, text)
            if action == "import":
                import_tuning(tool, text)
                transaction.commit()
    except LineError as error:
        raise click.UsageError(str(error)) from error
    lines = [english(finding.message) for finding in found]
    return Result({"findings": lines}, lines or [f"{action}: no findings"], int(bool(found)))


def exported(text: str, file: Path | None) -> Result:
    """Write *text* into *file*, or return it to be printed."""
    if file is None:
        return Result({"text": text}, [text.rstrip()])
    file.write_text(text, "utf-8")
    return Result({"file": str(file)}, [f"written: {file}"])


def content_of(file: Path) -> bytes:
    """Return the content of *file*, one byte more than allowed at most.  Raises click.UsageError if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
