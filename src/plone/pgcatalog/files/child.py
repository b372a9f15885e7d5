"""Process that extracts the text of files, one after the other; started by ``extractor``, without modules of Zope.

Each line of the input is a request, a JSON object with

- "path" and "kind", the content type of the file,
- "longest", the most characters of the text,
- "seconds", after which the program ends itself,
- "languages" of Tesseract for scanned pages, "" without recognition; the "scan_seconds" after which no further page is
  recognised; and "pages", the texts of the first scanned pages, which were recognised before.

Each line of the output is the response:

- {"text": ..., "scans": number of scanned pages, "pages": recognised texts of the first ones}
- or {"error": ..., "is_postponed": true if another attempt may succeed}
"""

from contextlib import suppress
from pathlib import Path
from plone.pgcatalog.files.formats import reading
from plone.pgcatalog.files.formats.parts import DAMAGED
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Postponed
from plone.pgcatalog.files.formats.parts import Unreadable
from time import monotonic
from typing import Any

import json
import os
import resource
import signal
import sys


#: Most bytes of memory, whatever a file unpacks to.
MEMORY = 3 << 30
#: The value of oom_score_adj, the highest: if memory is short, the kernel kills this process before Zope and PostgreSQL.
OOM_SCORE = 1000
#: Added to the niceness: Zope and PostgreSQL may need the same processors, and a text is not urgent.
NICENESS = 10
#: Most bytes of a file that the program may write: only temporary files of libraries, and parts of files.
FILE_SIZE = 64 << 20


def confine() -> None:
    """Lower the priority of the process, limit its memory and files, and disable its network where the kernel allows it."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # another kernel than Linux, or a container without /proc
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    with suppress(OSError, AttributeError):  # a container may forbid it; the libraries need no network
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to *request*."""
    signal.alarm(int(str(request["seconds"])))
    longest = int(str(request["longest"]))
    deadline = monotonic() + float(str(request["scan_seconds"]))
    parts = Parts(reading.read_part, longest, str(request["languages"]), deadline, pages=list(request["pages"]))
    try:
        text = reading.read(str(request["path"]), "", str(request["kind"]), parts)
    except (Unreadable, Postponed) as error:
        return {"error": str(error)[:500], "is_postponed": isinstance(error, Postponed)}
    except DAMAGED as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    finally:
        signal.alarm(0)
    return {"text": text[:longest], "scans": parts.scans, "pages": parts.pages}


def main() -> None:
    confine()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
