"""The texts of manual pages of Debian, as texts that no benchmark has made."""

from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path

import gzip
import re
import subprocess


#: The folder of the German manual pages (package ``manpages-de``).
GERMAN = Path("/usr/share/man/de")
#: Requests of roff whose arguments are text.
_TEXT = frozenset("B I BR IR RB RI BI IB SH SS TP IP SM SB Nm Sh Ss Em Sy Nd".split())  # noqa: SIM905
#: Escapes of roff: fonts, sizes, characters, strings, and marks of one character.
_ESCAPE = re.compile(r"\\(?:f(?:\(..|\[[^\]]*\]|.)|s[+-]?\d|\(..|\[[^\]]*\]|\*(?:\(..|\[[^\]]*\]|.)|.)")


def manuals_of(packages: Iterable[str]) -> list[Path]:
    """Return the files of the manual pages of installed Debian *packages*.  Raises SystemExit if one is not installed."""
    command = ["dpkg-query", "--listfiles", *packages]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise SystemExit(f"{listed.stderr.strip()}\nRun: apt-get install {' '.join(packages)}")
    return [
        Path(line) for line in listed.stdout.splitlines() if line.startswith("/usr/share/man/") and line.endswith(".gz")
    ]


def manual_pages(files: Iterable[Path]) -> Iterator[str]:
    """Yield the text of each of *files* of manual pages, without the requests and escapes of roff."""
    for path in sorted(files):
        lines = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").splitlines()
        yield "\n".join(filter(None, map(text_of_line, lines)))


def text_of_line(line: str) -> str:
    """Return the text of a *line* of roff; "" for a request without text."""
    if line[:1] in (".", "'"):
        request, _, line = line[1:].partition(" ")
        if request not in _TEXT:
            return ""
    return _ESCAPE.sub(lambda match: "-" if match[0] == r"\-" else "", line)
