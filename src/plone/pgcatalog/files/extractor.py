"""Extraction of the text of a file: a utility that a site can replace; the default is xberg and others in a process of its own."""

from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path
from plone.pgcatalog.database.needed import is_read
from plone.pgcatalog.files.kinds import KINDS as KINDS
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from zope.interface import Attribute
from zope.interface import implementer
from zope.interface import Interface

import json
import os
import select
import signal
import subprocess
import sys


#: The libraries that read files, of the extra "files".
LIBRARIES = ("xberg", "pypdfium2", "lxml", "olefile", "xlrd")
#: The number of our own readers, one more with each change of their texts: files are then read again that had none.
FORMATS = 2
#: Time limit in seconds for a file.
TIMEOUT = 60.0
#: Seconds after which recognition of a file pauses behind a page, so that the files that were saved meanwhile are read.
SCAN_SECONDS = 20.0
#: Time limit in seconds for the last page of these.
PAGE_SECONDS = 130.0
#: Seconds to wait for the end of a process.
STOP_SECONDS = 5.0
#: Files after which the process is replaced, so that memory leaks of libraries end.
FILES_OF_A_CHILD = 200
#: Most characters of a text that are stored.
LONGEST_TEXT = 500_000
#: Most bytes of a file whose text is extracted.
LARGEST_FILE = 200 << 20
#: Most bytes of a response; JSON takes up to 12 for a character, and recognised pages are in it twice.
LONGEST_ANSWER = 24 * LONGEST_TEXT + 1_000_000


class ITextExtractor(Interface):
    """Utility that extracts the text of a file."""

    name = Attribute("Name and version; stored with each text")
    is_ready = Attribute("False if a requirement is not installed; files are then catalogued as by Plone")

    def kinds(kind: str) -> bool:  # type: ignore[empty-body]
        """True if files of the content type *kind* may have a text."""

    def extract(path: str, kind: str) -> str:  # type: ignore[empty-body]
        """Return the text of the file at *path*, whose content type is *kind*.  Raises ExtractionError."""


class ExtractedText(str):
    """The text of a file; *scans* is the number of its pages that are pictures and have no text."""

    scans = 0


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """The *text* of a file with the recognised texts of its first scanned *pages*; *is_complete*: of all of them."""

    text: str
    pages: list[str]
    is_complete: bool


class IScanReader(ITextExtractor):
    """An extractor that counts scanned pages and can recognise their text; its texts are of the class ExtractedText."""

    def recognise(  # type: ignore[empty-body]
        path: str, kind: str, languages: Sequence[str], pages: Sequence[str]
    ) -> RecognisedText:
        """Return the text of the file at *path*, of the content type *kind*, with at least one more of its scanned pages.

        *languages* are Tesseract's, *pages* the texts of the first scanned pages, of an earlier result.  *kind* may be one
        of ``kinds.PICTURES``.  Raises ExtractionError.
        """


class ExtractionError(Exception):
    """The text of a file cannot be extracted; the message is the reason.  *for_good*: another attempt would fail, too."""

    def __init__(self, reason: str, for_good: bool = True) -> None:
        super().__init__(reason)
        self.for_good = for_good


@implementer(IScanReader)
class Xberg:
    """Extractor that uses child processes, one for each concurrent thread."""

    def __init__(self) -> None:
        #: idle processes
        self._idle: list[Child] = []

    @cached_property
    def name(self) -> str:
        try:
            return ", ".join([f"formats {FORMATS}", *(f"{library} {version(library)}" for library in LIBRARIES)])
        except PackageNotFoundError:
            return ""

    @property
    def is_ready(self) -> bool:
        return bool(self.name)

    def kinds(self, kind: str) -> bool:
        return is_read(kind)

    def extract(self, path: str, kind: str) -> ExtractedText:
        answer = self._answer(path, kind, TIMEOUT)
        text = ExtractedText(answer["text"])
        text.scans = int(answer["scans"])
        return text

    def recognise(self, path: str, kind: str, languages: Sequence[str], pages: Sequence[str]) -> RecognisedText:
        timeout = TIMEOUT + SCAN_SECONDS + PAGE_SECONDS
        answer = self._answer(path, kind, timeout, languages="+".join(languages), pages=list(pages))
        recognised = list(map(str, answer["pages"]))
        return RecognisedText(str(answer["text"]), recognised, len(recognised) >= int(answer["scans"]))

    def _answer(self, path: str, kind: str, timeout: float, **more: Any) -> dict[str, Any]:
        """Return the response of a process to a request with *more* about the file at *path*.  Raises ExtractionError."""
        size = os.path.getsize(path)
        if size > LARGEST_FILE:
            raise ExtractionError(f"a file of {size >> 20} MB is too large")
        try:
            child = self._idle.pop()
        except IndexError:
            child = Child()
        try:
            request = {"path": path, "kind": kind, "longest": LONGEST_TEXT, "seconds": int(2 * timeout)}
            request |= {"languages": "", "scan_seconds": SCAN_SECONDS, "pages": []}
            answer = child.request(request | more, timeout)
        except ExtractionError:
            child.end()
            raise
        if child.files < FILES_OF_A_CHILD:
            self._idle.append(child)
        else:
            child.end()
        if "error" in answer:
            raise ExtractionError(str(answer["error"]), not answer.get("is_postponed"))
        return answer

    def end(self) -> None:
        """End the idle processes."""
        while self._idle:
            self._idle.pop().end()


#: The name in sites that have registered it in their own ZCML.
Kreuzberg = Xberg

#: Variable with the folders of shared libraries, without which this Python may not start.
LIBRARY_PATH = "LD_LIBRARY_PATH"
#: The program of the process: the first argument is the folder of the package ``plone``.
CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from plone.pgcatalog.files.child import main; main()"


class Child:
    """A process that runs ``child``; *files* is the number of requests that it was sent."""

    def __init__(self) -> None:
        self.files = 0
        self._folder = TemporaryDirectory(prefix="pgcatalog-files-")
        # A new environment, since that of Zope may contain the password of the database.
        environment = {"PATH": os.defpath, "HOME": self._folder.name, "TMPDIR": self._folder.name}
        if LIBRARY_PATH in os.environ:
            environment[LIBRARY_PATH] = os.environ[LIBRARY_PATH]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", CHILD, str(Path(__file__).parents[3])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=environment,
        )

    def request(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Return the response to *request*.

        Raises ExtractionError if there is none after *timeout* seconds, or the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.files += 1
        deadline = monotonic() + timeout
        received = b""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            # The file is not the reason.
            raise ExtractionError("the extraction process had already ended", for_good=False) from error
        while not received.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - monotonic()))[0]:
                raise ExtractionError(f"no text after {timeout:.0f} seconds")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self._ended()
            received += chunk
            if len(received) > LONGEST_ANSWER:
                raise ExtractionError("the text is too long")
        answer: dict[str, Any] = json.loads(received)
        return answer

    def _ended(self) -> ExtractionError:
        """Return the error for a process that has ended while it was working on a file."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        if self._process.returncode == -signal.SIGKILL:
            # By the kernel, when memory was short, or by an administrator: the file need not be the reason.
            return ExtractionError("the extraction process was killed", for_good=False)
        return ExtractionError("the extraction process has ended: the file needs too much memory, or is damaged")

    def end(self) -> None:
        """Kill the process and delete its folder."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()
