"""The list of content types equals the kinds that the library reads."""

from plone.pgcatalog.database.needed import content_types
from typing import Any

import mimetypes
import pytest


@pytest.mark.parametrize("kind", sorted(content_types()))
def test_the_library_reads_each_kind_of_the_list(kind: str) -> None:
    kreuzberg: Any = pytest.importorskip("kreuzberg", reason="needs the extra files", exc_type=ImportError)
    kreuzberg.validate_mime_type(kind)


@pytest.mark.parametrize(
    "ending", ["pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "rtf", "epub", "eml"]
)
def test_files_of_offices_are_on_the_list(ending: str) -> None:
    kind, _ = mimetypes.guess_type(f"a.{ending}")
    assert kind in content_types()
