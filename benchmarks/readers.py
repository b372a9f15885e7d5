"""Compares libraries that extract the text of files: ``python -m benchmarks.readers FOLDER``.

Each library reads

- the small files of ``--cases``, a Python file with a list CASES of (name, kind, bytes, texts that a person sees);
- the public files of ``readers.tsv``, fetched into FOLDER with their checksums.

Reference of a public file are the words that poppler, LibreOffice or Tika shows.  Each file is read by a process of its
own with a time limit.  Requirements: the libraries in the environment of ``--python`` (see ``readers_child``); pdftotext,
soffice and java on the path; ``--tika``, a folder with the jars of tika-core and tika-parsers-standard-package.
Texts are stored in FOLDER, too: delete ``FOLDER/texts/NAME`` to read the files by that library again.

``--speed N`` times this package's reader and kreuzberg (in the environment of ``--kreuzberg``) on N PDFs of 5 to 20 pages instead,
each in one process that reads them one after the other, and adds the result to ``--output``.
"""

from benchmarks.machine import header
from benchmarks.marks import put_between
from benchmarks.readers_child import CSV
from benchmarks.readers_child import DOCX
from benchmarks.readers_child import HTML
from benchmarks.readers_child import LIBRARIES
from benchmarks.readers_child import MAIL
from benchmarks.readers_child import MSG
from benchmarks.readers_child import ODP
from benchmarks.readers_child import ODS
from benchmarks.readers_child import ODT
from benchmarks.readers_child import PDF
from benchmarks.readers_child import PPTX
from benchmarks.readers_child import RTF
from benchmarks.readers_child import XLS
from benchmarks.readers_child import XLSX
from benchmarks.readers_child import XML
from collections.abc import Iterable
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import argparse
import hashlib
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import unicodedata
import urllib.request


#: Seconds for a file, and for starting a reader.
TIMEOUT = 90.0
#: ending -> content type
KINDS = {
    "pdf": PDF,
    "docx": DOCX,
    "doc": "application/msword",
    "odt": ODT,
    "rtf": RTF,
    "xlsx": XLSX,
    "xls": XLS,
    "ods": ODS,
    "csv": CSV,
    "pptx": PPTX,
    "ppt": "application/vnd.ms-powerpoint",
    "odp": ODP,
    "epub": "application/epub+zip",
    "eml": MAIL,
    "msg": MSG,
    "html": HTML,
    "xml": XML,
    "txt": "text/plain",
    "zip": "application/zip",
}
#: Filters of LibreOffice, and the endings of the files that each converts; the numbers are those of all sheets as shown.
SHEETS = "csv:Text - txt - csv (StarCalc):32,34,76,1,,0,false,true,true,false,false,-1"
FILTERS = {
    "txt:Text (encoded):UTF8": ("docx", "doc", "odt", "rtf"),
    SHEETS: ("xlsx", "xls", "ods"),
    "pdf": ("pptx", "ppt", "odp"),
}
OURS, KREUZBERG = "plone.pgcatalog", "kreuzberg"
POPPLER, LIBREOFFICE, TIKA = "poppler", "LibreOffice", "Tika"
REFERENCES = (POPPLER, LIBREOFFICE, TIKA)
CHILD = Path(__file__).with_name("readers_child.py")
#: Fewest and most pages of a PDF whose reading is timed, and seconds for all.
PAGES, SPEED_TIMEOUT = (5, 20), 7200.0
#: Characters inside of words that are not shown.
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
WORD = re.compile(r"[^\W_]{2,}")
#: Chinese and Japanese have no blanks: each two neighbours are a word.
UNDIVIDED = re.compile("[\u3040-\u30ff\u3400-\u9fff]{2,}")


@dataclass(frozen=True)
class Source:
    """A public file."""

    sha256: str
    repository: str
    commit: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.sha256[:12]}.{self.path.rpartition('.')[2].lower()}"

    @property
    def url(self) -> str:
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{quote(self.path)}"


def sources() -> list[Source]:
    """Return the public files of ``readers.tsv``."""
    lines = Path(__file__).with_name("readers.tsv").read_text("utf-8").splitlines()
    return [Source(*line.split("\t")) for line in lines if not line.startswith("#")]


def fetch(source: Source, folder: Path) -> Path:
    """Return the path of *source* in *folder*, fetched if it is not there.  Raises ValueError if its bytes are others."""
    path = folder / source.name
    if not path.exists():
        with urllib.request.urlopen(source.url, timeout=TIMEOUT) as response:
            path.write_bytes(response.read())
    if hashlib.sha256(path.read_bytes()).hexdigest() != source.sha256:
        raise ValueError(f"{path} is not {source.url}")
    return path


def words(text: str) -> set[str]:
    """Return the distinct words of *text*: of two or more letters or digits, in small letters."""
    shown = unicodedata.normalize("NFKC", text.translate(INVISIBLE)).casefold()
    undivided = {run[i : i + 2] for run in UNDIVIDED.findall(shown) for i in range(len(run) - 1)}
    return undivided | set(WORD.findall(UNDIVIDED.sub(" ", shown)))


def line(text: str) -> str:
    """Return words and signs of *text* in one line, as the cases compare them."""
    return " ".join(re.findall(r"[\w&.-]+", unicodedata.normalize("NFKC", text)))


class Readers:
    """All readers; the text of a file is stored in the folder *texts*, per reader."""

    def __init__(self, python: str, tika: str, texts: Path) -> None:
        self.python = python
        self.tika = tika
        self.texts = texts

    def read(self, reader: str, path: Path, kind: str) -> str | None:
        """Return the text of the file *path* by *reader*, "" after a failure, None if it does not read this *kind*."""
        if not self.is_for(reader, kind, path.suffix[1:]):
            return None
        stored = self.texts / reader / f"{path.name}.txt"
        if not stored.exists():
            stored.parent.mkdir(parents=True, exist_ok=True)
            try:
                stored.write_bytes(self.started(reader, path, kind))
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                reason = (error.stderr or b"").decode("utf-8", "replace").strip().splitlines() or [str(error)]
                stored.with_suffix(".failed").write_text(reason[-1][:300] + "\n", "utf-8")
                stored.write_bytes(b"")
        return stored.read_bytes().decode("utf-8", "replace")

    def read_by_tika(self, paths: Iterable[Path]) -> None:
        """Read those of *paths* that Tika has not read, in one process, since Java takes seconds to start."""
        folder = self.texts / TIKA
        folder.mkdir(parents=True, exist_ok=True)
        new = [str(path) for path in paths if not (folder / f"{path.name}.txt").exists()]
        program = str(Path(__file__).with_name("Tika.java"))
        subprocess.run(["java", "-cp", f"{self.tika}/*", program, f"{TIMEOUT:.0f}", str(folder), *new], check=True)

    def is_for(self, reader: str, kind: str, ending: str) -> bool:
        """True if *reader* reads the content type *kind*."""
        if reader in LIBRARIES:
            return kind in LIBRARIES[reader][1] or LIBRARIES[reader][1] == ("",)
        if reader == POPPLER:
            return kind == PDF
        return reader == TIKA or any(ending in endings for endings in FILTERS.values())

    def started(self, reader: str, path: Path, kind: str) -> bytes:
        """Return the text of *path*, from a process.  Raises TimeoutExpired, CalledProcessError."""
        if reader == POPPLER:
            return output("pdftotext", str(path), "-")
        if reader == LIBREOFFICE:
            return self.converted(path)
        return output(self.interpreter(reader), str(CHILD), reader, str(path), kind)

    def interpreter(self, library: str) -> str:
        """Return the Python that has *library*."""
        return sys.executable if library in (OURS, KREUZBERG, "Python") else self.python

    def converted(self, path: Path) -> bytes:
        """Return the text of *path* by LibreOffice."""
        (into,) = (into for into, endings in FILTERS.items() if path.suffix[1:] in endings)
        with TemporaryDirectory() as folder:
            profile = f"-env:UserInstallation=file://{folder}/profile"
            output("soffice", profile, "--headless", "--convert-to", into, "--outdir", f"{folder}/out", str(path))
            made = sorted(Path(folder, "out").glob("*"))
            return b"\n".join(output("pdftotext", str(f), "-") if f.suffix == ".pdf" else f.read_bytes() for f in made)

    def has_failed(self, reader: str, path: Path) -> bool:
        """True if *reader* ended with an error at the file *path*."""
        return (self.texts / reader / f"{path.name}.failed").exists()

    def versions(self) -> dict[str, str]:
        """Return the version of each reader."""
        found = {}
        for library in LIBRARIES:
            found[library] = output(self.interpreter(library), str(CHILD), library)
        version = subprocess.run(["pdftotext", "-v"], capture_output=True, check=True).stderr
        (jar,) = Path(self.tika).glob("tika-core-*.jar")
        return {name: text.decode() for name, text in found.items()} | {
            POPPLER: version.decode().split()[2],
            LIBREOFFICE: output("soffice", "--version").decode().split()[1],
            TIKA: jar.stem.removeprefix("tika-core-"),
        }


def output(*command: str, timeout: float = TIMEOUT) -> bytes:
    """Return the output of *command*, which may take *timeout* seconds.  Raises TimeoutExpired, CalledProcessError."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # soffice is a script, whose program would run on.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, errors)
    return out


def reference(texts: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
    """Return the words that any reference shows of a file with *texts*, and those on which two agree, if two have read it."""
    shown = [words(text) for name in REFERENCES if (text := texts[name])]
    agreed = {word for i, found in enumerate(shown) for word in found if any(word in other for other in shown[:i])}
    together: set[str] = set().union(*shown)
    return together, agreed if len(shown) > 1 else together


def of_file(texts: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the number of words of a file with *texts* by reader, and how many each reader has lost."""
    together, agreed = reference(texts)
    found = {name: words(text) for name, text in texts.items() if text is not None}
    lost = {name: [len(together - have), len(agreed - have)] for name, have in found.items()}
    return {"words": [len(together), len(agreed)], "lost": lost}


def of_case(text: str | None, expected: Iterable[str]) -> bool | None:
    """Return whether *text* has all *expected* texts; None if there is no text."""
    return None if text is None else all(line(part) in line(text) for part in expected)


def share(files: Iterable[Mapping[str, Any]], reader: str, agreed: int) -> tuple[int, int]:
    """Return the words that *reader* lost of *files*, and the number of words; *agreed*: 1 for those of two references."""
    read = [file for file in files if reader in file["lost"]]
    return sum(file["lost"][reader][agreed] for file in read), sum(file["words"][agreed] for file in read)


def tables(result: Mapping[str, Any]) -> str:
    """Return *result* as Markdown: cases by reader, then the share of lost words by kind and reader."""
    names = list(result["readers"])
    heads = [f"{name} {version.partition('.dev')[0]}" for name, version in result["readers"].items()]
    head = lambda first: [f"| {first} | {' | '.join(heads)} |", "|---|" + ":-:|" * len(names)]  # noqa: E731
    signs = {True: "✓", False: "**lost**", None: ""}
    lines = head("case")
    for case, passed in result["cases"].items():
        lines.append(f"| {case} | {' | '.join(signs[passed.get(name)] for name in names)} |")
    totals = []
    for name in names:
        values = [passed[name] for passed in result["cases"].values() if passed.get(name) is not None]
        totals.append(f"{sum(values)} of {len(values)}")
    lines += [f"| **passed** | {' | '.join(totals)} |", "", *head("lost words of public files")]
    kinds: dict[str, list[Any]] = {}
    for path, file in result["files"].items():
        kinds.setdefault(path.rpartition(".")[2].lower(), []).append(file)
    rows = [(f"{len(files)} {kind}", files, 0) for kind, files in kinds.items()]
    everything = list(result["files"].values())
    rows += [(f"**{len(everything)} files**", everything, 0), ("**shown by two**", everything, 1)]
    for title, files, agreed in rows:
        cells = (share(files, name, agreed) for name in names)
        lines.append(f"| {title} | {' | '.join(f'{lost / count:.1%}' if count else '' for lost, count in cells)} |")
    lines.append(f"| **files with an error** | {' | '.join(str(result['failed'][name]) for name in names)} |")
    if speed := result.get("speed"):
        lines += [
            "",
            f"| {speed['files']} PDFs, {speed['pages']} pages | seconds | ms a file | characters |",
            "|---|--:|--:|--:|",
        ]
        for name, found in speed["readers"].items():
            ms = 1000 * found["seconds"] / speed["files"]
            lines.append(f"| {name} {found['version']} | {found['seconds']:.1f} | {ms:.1f} | {found['characters']:,} |")
    return "\n".join(lines)


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds that this package's reader and kreuzberg take for PDFs, one after the other."""
    from benchmarks.files import document  # it needs Zope

    folder = options.folder / f"speed-{options.speed}"
    folder.mkdir(exist_ok=True)
    pages = [Random(number).randint(*PAGES) for number in range(options.speed)]
    for number, count in enumerate(pages):
        (folder / f"{number:05}.pdf").write_bytes(document(number, count))
    found = {}
    for library, python in ((OURS, sys.executable), (KREUZBERG, options.kreuzberg)):
        seconds = output(python, str(CHILD), library, str(folder), PDF, "all", timeout=SPEED_TIMEOUT)
        version = output(python, str(CHILD), library).decode().partition(".dev")[0]
        found[library] = {"version": version, **json.loads(seconds)}
    return {**header("–"), "files": options.speed, "pages": sum(pages), "readers": found}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures."""
    readers = Readers(options.python, options.tika, options.folder / "texts")
    names = [*LIBRARIES, *REFERENCES]
    files = {source: fetch(source, options.folder) for source in sources()}
    endings = {kind: ending for ending, kind in KINDS.items()}
    kinds = {path: KINDS[path.suffix[1:]] for path in files.values()}
    cases, expected = {}, {}
    for name, kind, data, texts in runpy.run_path(str(options.cases))["CASES"] if options.cases else ():
        path = options.folder / f"case-{name}.{endings.get(kind, 'bin')}"
        path.write_bytes(data)
        kinds[path] = kind
        cases[name], expected[name] = path, texts
    readers.read_by_tika(kinds)
    with ThreadPoolExecutor(options.processes) as pool:
        jobs = [(path, reader) for path in kinds for reader in names]
        texts_of = dict(zip(jobs, pool.map(lambda job: readers.read(job[1], job[0], kinds[job[0]]), jobs), strict=True))
    by_reader = lambda path: {name: texts_of[path, name] for name in names}  # noqa: E731
    return header("–") | {
        "command": "python -m benchmarks.readers",
        "readers": readers.versions(),
        "cases": {
            case: {name: of_case(text, expected[case]) for name, text in by_reader(path).items() if text is not None}
            for case, path in cases.items()
        },
        "failed": {name: sum(readers.has_failed(name, path) for path in files.values()) for name in names},
        "files": {f"{source.repository}/{source.path}": of_file(by_reader(path)) for source, path in files.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where files and texts are stored")
    parser.add_argument("--cases", type=Path, help="Python file with CASES")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the libraries")
    parser.add_argument("--tika", default="tika", help="folder with the jars of Tika")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--speed", type=int, metavar="N", help="time two readers on N PDFs instead")
    parser.add_argument("--kreuzberg", default=sys.executable, help="the Python that has kreuzberg, for --speed")
    parser.add_argument("--output", type=Path, help="store the figures in this JSON file")
    parser.add_argument("--page", type=Path, help="put the tables into this page of the documentation")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    stored = json.loads(options.output.read_text("utf-8")) if options.output and options.output.exists() else {}
    if options.speed:
        result = stored | {"speed": speed(options)}
    else:
        result = run(options) | ({"speed": stored["speed"]} if "speed" in stored else {})
    print(tables(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    if options.page:
        put_between(options.page, "readers", tables(result))


if __name__ == "__main__":
    main()
