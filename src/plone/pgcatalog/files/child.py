"""Extracts the text of files, one after the other: run as a program of its own by ``extractor``, with no module of the site.

Each line of the input is a request, {"path": ..., "kind": its content type, "longest": characters of the text, "seconds": after
which the program ends even if nobody waits any more}; each line of the output its answer, {"text": ...} or {"error": ...}.
"""

from contextlib import suppress
from kreuzberg import ExtractionConfig
from kreuzberg import KreuzbergError
from pathlib import Path

import json
import kreuzberg
import os
import resource
import signal
import sys


#: Bytes of memory: what a file may make of itself ends there.
MEMORY = 3 << 30
#: Added to its score when memory is short, of 1,000: the kernel ends this process before Zope and PostgreSQL.
OOM_SCORE = 1000
#: Added to its niceness: nobody waits for a text, and pages and PostgreSQL may be on the same processors.
NICENESS = 10
#: Bytes of a file that the program may write: nothing but what a library keeps for a moment.
FILE_SIZE = 64 << 20


def confine() -> None:
    """Give up what the work does not need: processors that others want, memory without bound, core dumps, a place among the
    last processes that the kernel ends, and, where it allows, the network.
    """
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # a kernel of another kind, or a container without /proc
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    with suppress(OSError, AttributeError):  # a container may forbid it; the library asks for no network
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)


def answer(request: dict[str, object]) -> dict[str, str]:
    """Return the text of the file that *request* names, or why there is none."""
    signal.alarm(int(str(request["seconds"])))
    config = ExtractionConfig(use_cache=False, enable_quality_processing=False)
    try:
        result = kreuzberg.extract_file_sync(str(request["path"]), str(request["kind"]), config)
    except (KreuzbergError, ValueError, RuntimeError, OSError, MemoryError) as error:
        # Some messages of the library begin with the name of their class.
        kind, text = type(error).__name__, str(error)
        return {"error": (text if text.startswith(f"{kind}: ") else f"{kind}: {text}")[:500]}
    finally:
        signal.alarm(0)
    return {"text": result.content[: int(str(request["longest"]))]}


def main() -> None:
    confine()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
