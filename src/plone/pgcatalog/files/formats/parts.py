"""Limits for the parts of a file: members of a zip, attachments of a mail, files in a PDF."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from struct import error as StructError
from typing import IO

import os
import tempfile


#: Most containers around a part.
DEEPEST = 4
#: Most parts of a file, at all depths.
MOST_PARTS = 1000
#: Most bytes of all parts of a file, unpacked.
LARGEST = 512 << 20
#: Most bytes of a part that is stored as a temporary file, where libraries read it.
LARGEST_PART = 64 << 20
#: Bytes that are read at once.
CHUNK = 1 << 16


#: Errors of libraries at a damaged file.
DAMAGED = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError),
    *(RuntimeError, StructError, TypeError, ValueError),
)


class Unreadable(ValueError):
    """A file or a part has no text; the message is the reason."""


class Postponed(Exception):
    """The text of a file cannot be recognised now; another attempt may succeed."""


@dataclass
class Parts:
    """The parts of one file.

    - *read* returns the text of a part, from its path, its name, the content type that the container states, and these limits;
      it raises Unreadable.
    - *longest* is the most characters of the text.
    - *languages* are the languages of Tesseract for scanned pages, such as "deu+eng"; "" without recognition.  After
      *deadline*, a time of ``monotonic``, no further page is recognised.
    - *scans* is the number of scanned pages so far, *pages* the recognised texts of the first ones.
    """

    read: Callable[[str, str, str, "Parts"], str]
    longest: int
    languages: str = ""
    deadline: float = 0.0
    scans: int = 0
    pages: list[str] = field(default_factory=list)
    depth: int = 0
    count: int = 0
    size: int = 0
    errors: list[str] = field(default_factory=list)

    def text(self, name: str, kind: str, stream: IO[bytes]) -> str:
        """Return *name* and the text of the part in *stream*, whose stated content type is *kind*.

        A part that cannot be read, or is beyond the limits, has no text; its error is added to *errors*.
        """
        lines = [name]
        self.count += 1
        if self.depth >= DEEPEST or self.count > MOST_PARTS:
            return name
        handle, path = tempfile.mkstemp(suffix=Path(name).suffix[:10] if name.isascii() and name.isprintable() else "")
        self.depth += 1
        try:
            with os.fdopen(handle, "wb") as out:
                size = 0
                for chunk in self.chunks(stream):
                    size += len(chunk)
                    if size > LARGEST_PART:
                        raise Unreadable(f"a part of more than {LARGEST_PART >> 20} MB")
                    out.write(chunk)
            # Pages are those of the file that holds the part.
            lines.append(self.read(path, name, kind, self).replace("\f", "\n"))
        except DAMAGED as error:
            self.errors.append(f"{name}: {error}")
        finally:
            self.depth -= 1
            with suppress(FileNotFoundError):
                os.unlink(path)
        return "\n".join(filter(None, lines))

    def chunks(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Yield the bytes of *stream*.  Raises Unreadable when all parts of the file are larger than the limit."""
        while chunk := stream.read(CHUNK):
            self.size += len(chunk)
            if self.size > LARGEST:
                raise Unreadable(f"the parts of the file have more than {LARGEST >> 20} MB")
            yield chunk
