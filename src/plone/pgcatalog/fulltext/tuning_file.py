"""The tuning of a site as one text file, which can be edited, compared and imported into another site.

A section per setting, such as ``[synonyms]``, is followed by the lines of the setting as in the control panel.  Empty lines
and lines that begin with ``#`` are ignored; a space before ``#`` makes it a line of the setting.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import READERS
from plone.pgcatalog.i18n import _
from typing import Any


def read_file(text: str) -> dict[str, str]:
    """Return setting -> its lines, for the sections of *text*; a setting without a section is missing.

    Raises LineError for an unknown section, and for a line before the first section.
    """
    settings: dict[str, list[str]] = {}
    for _number, name, line in numbered_lines(text):
        lines = settings.setdefault(name, [])
        if line:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in settings.items()}


def numbered_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (number in *text*, setting, line) for each line of a setting, and for each section with the line "".

    Raises LineError as ``read_file`` does.
    """
    name = None
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if is_section := _is_section(line):
            name = line.strip()[1:-1]
            if name not in READERS:
                values = {"number": str(number), "name": repr(name), "names": ", ".join(READERS)}
                raise LineError(_("Line ${number}: there is no section ${name}; the sections are: ${names}", values))
        elif not line.strip() or line.startswith("#"):
            continue
        if name is None:
            raise LineError(_("Line ${number}: no section begins before this line", {"number": str(number)}))
        yield number, name, "" if is_section else line.strip()


def written(settings: Mapping[str, Any]) -> str:
    """Return the text file with the tuning in *settings* (setting -> its lines); a setting without lines is empty there."""
    return "\n".join("\n".join([f"[{name}]", *_lines(settings.get(name)), ""]) for name in READERS)


def _lines(text: Any) -> list[str]:
    lines = (line.strip() for line in (text or "").split("\n"))
    return [f" {line}" if line.startswith("#") or _is_section(line) else line for line in lines if line]


def _is_section(line: str) -> bool:
    line = line.rstrip()
    return line.startswith("[") and line.endswith("]") and line[1:-1].isidentifier()
