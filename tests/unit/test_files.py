"""The list of content types equals the kinds that our readers and xberg read."""

from importlib.metadata import metadata
from pathlib import Path
from plone.pgcatalog.database.needed import content_types
from plone.pgcatalog.files.kinds import KINDS
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import asyncio
import mimetypes
import pytest
import re
import tomllib


PROJECT: dict[str, Any] = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
#: Licences that a work under GPL-2.0-or-later can be combined with; Apache-2.0 is so by version 3.
COMPATIBLE = re.compile(
    r"\b(?:MIT|BSD|ISC|PSF|Python Software Foundation|Apache|ZPL|Zope|[AL]?GPL|MPL|Mozilla)", re.IGNORECASE
)
INCOMPATIBLE = re.compile(r"Elastic|BUSL|Business Source|SSPL|Proprietary|Commons Clause", re.IGNORECASE)


@pytest.mark.parametrize("kind", sorted(content_types()))
def test_each_kind_of_the_list_has_a_reader(kind: str, tmp_path: Path) -> None:
    xberg: Any = pytest.importorskip("xberg", reason="needs the extra files", exc_type=ImportError)
    from plone.pgcatalog.files.formats import reading

    (tmp_path / "file").write_bytes(b"text")
    asked = xberg.ExtractInput(kind="uri", uri=str(tmp_path / "file"), mime_type=kind)
    if not any(pattern.fullmatch(kind) for pattern, _ in reading.PATTERNS):
        error = ""
        try:
            asyncio.run(xberg.extract(asked, reading.library.CONFIG))
        except RuntimeError as raised:
            error = str(raised)
        assert "Unsupported format" not in error


@pytest.mark.parametrize(
    "ending", ["pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "rtf", "epub", "eml"]
)
def test_files_of_offices_are_on_the_list(ending: str) -> None:
    kind, _ = mimetypes.guess_type(f"a.{ending}")
    assert kind in KINDS


def requirements(names: tuple[str, ...] = ()) -> list[str]:
    """Return the requirements of the extras *names*, or of the package and all extras."""
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    chosen = [each for name in names or extras for each in extras[name]]
    return chosen if names else [*PROJECT["dependencies"], *chosen]


@pytest.mark.parametrize("requirement", requirements())
def test_each_requirement_has_a_licence_that_ours_can_go_with(requirement: str) -> None:
    found = metadata(re.split(r"[^\w.-]", requirement)[0])
    stated = [found.get(key) or "" for key in ("License-Expression", "License")]
    stated += [line for line in found.get_all("Classifier", []) if line.startswith("License")]
    licence = "\n".join(stated)
    assert COMPATIBLE.search(licence), licence[:500]
    assert not INCOMPATIBLE.search(licence), licence[:500]


@pytest.mark.parametrize("requirement", [each for each in requirements(("files",)) if not each.startswith("lxml")])
def test_readers_have_an_upper_bound(requirement: str) -> None:
    """The next major version of a reader may change its licence, as that of kreuzberg did."""
    assert re.search(r",<\d+$", requirement)
