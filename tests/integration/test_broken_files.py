"""Damaged files of each kind, and older Office files with impossible counts: a text, a part of it, or a failure with a reason."""

from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.files import extractor as module
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import Xberg
from random import Random
from struct import pack
from tests.integration.office_cases import OFFICE
from tests.integration.older_cases import atom
from tests.integration.older_cases import container
from tests.integration.older_cases import DECK
from tests.integration.older_cases import label
from tests.integration.older_cases import listed
from tests.integration.older_cases import OLDER
from tests.integration.older_cases import ole
from tests.integration.older_cases import PPT
from tests.integration.older_cases import ppt
from tests.integration.older_cases import rec
from tests.integration.older_cases import shape
from tests.integration.older_cases import XLS
from tests.integration.older_cases import xls

import pytest


#: Kind -> a file of it, and all older files, whose readers are our own.
WHOLE = {kind: data for _, kind, data, _ in reversed([*OFFICE, *OLDER])} | {name: data for name, _, data, _ in OLDER}
KINDS = {name: kind for name, kind, _, _ in OLDER}
CUTS, FLIPS = 8, 12
#: A slide of PowerPoint with a word.
QUOKKA = container(1006, shape("quokka"))


@pytest.fixture(scope="module")
def extractor() -> Iterator[Xberg]:
    made = Xberg()
    yield made
    made.end()


def text(extractor: Xberg, path: Path, kind: str, data: bytes) -> str:
    """Return the text of *data*, or the reason of the failure, which is no limit of time and no crash."""
    path.write_bytes(data)
    try:
        return extractor.extract(str(path), kind)
    except ExtractionError as error:
        reason = str(error)
    assert reason
    assert not reason.startswith(("no text after", "the extraction process"))
    return reason


def damaged(data: bytes) -> Iterator[bytes]:
    """Yield *data* truncated, and with changed bytes."""
    for cut in range(1, CUTS):
        yield data[: len(data) * cut // CUTS]
    for seed in range(FLIPS):
        random, changed = Random(seed), bytearray(data)
        for _ in range(1 + len(data) // 200):
            changed[random.randrange(len(data))] = random.randrange(256)
        yield bytes(changed)


@pytest.mark.parametrize("name", WHOLE)
def test_damaged_file_is_a_text_or_a_failure(extractor: Xberg, name: str, tmp_path: Path) -> None:
    for data in damaged(WHOLE[name]):
        text(extractor, tmp_path / "file", KINDS.get(name, name), data)


#: Files with a word that is in the text.
ENDLESS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "four billion strings": (XLS, lambda: xls(label("quokka"), more=rec(0xFC, pack("<2I", 2**32 - 1, 2**32 - 1)))),
    "a link over all cells": (XLS, lambda: xls(label("quokka") + rec(0x1B8, pack("<4H", 0, 65535, 0, 255) + bytes(60)) * 99)),
    "a cell in the last row of 200 sheets": (XLS, lambda: xls(label("quokka"), *[label("x", 65535)] * 200)),
    "a text box of 65,535 letters without one": (XLS, lambda: xls(rec(0x1B6, pack("<2H6xHH4x", 0, 0, 65535, 16)) + label("quokka"))),
    "500,000 charts in charts": (XLS, lambda: xls(label("quokka") + rec(0x809) * 500_000)),
    "a format of 60,000 digits": (XLS, lambda: xls(label("quokka"), formats=("0" * 4000 + "." + "0" * 4000,))),
    "containers 100,000 deep": (PPT, lambda: ppt(DECK | {2: container(1006, shape("quokka"), pack("<HHI", 15, 1036, 9) * 100_000)})),
    "20,000 slides in one place": (
        PPT,
        lambda: ppt(
            DECK
            | {
                1: container(1000, listed(0, *[(3, n, "quokka") for n in range(20_000)])),
                3: DECK[3] + atom(1, bytes(999_999)),
            }
        ),
    ),
    "a directory with a million numbers": (
        PPT,
        lambda: ole(
            {"PowerPoint Document": QUOKKA + atom(6002, pack("<I", 0xFFF << 20)) + atom(4085, bytes(28))}
        ),
    ),
    "an edit that is its own predecessor": (
        PPT,
        lambda: ole(
            {"PowerPoint Document": atom(1, b"x") + QUOKKA + atom(4085, pack("<2I3I2I", 0, 0, 9, 9, 1, 0, 0))}
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_impossible_counts_cost_no_text(
    extractor: Xberg, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 30.0)
    kind, make = ENDLESS[name]
    assert "quokka" in text(extractor, tmp_path / "file", kind, make())
