"""Kinds of files for the facet: each content type that people upload has the kind that they expect."""

from plone.pgcatalog.files.file_kinds import kind_of_file
from plone.pgcatalog.files.kinds import READ
from types import SimpleNamespace
from typing import Any

import pytest


OFFICE = "application/vnd.openxmlformats-officedocument."
UNKNOWN = "application/octet-stream"
KINDS = [
    ("pdf", "application/pdf application/x-pdf text/pdf"),
    (
        "word",
        f"application/msword application/x-msword {OFFICE}wordprocessingml.document {OFFICE}wordprocessingml.template"
        " application/vnd.ms-word.document.macroEnabled.12",
    ),
    ("excel", f"application/vnd.ms-excel application/msexcel {OFFICE}spreadsheetml.sheet"),
    ("powerpoint", f"application/vnd.ms-powerpoint {OFFICE}presentationml.slideshow"),
    ("opendocument", "application/vnd.oasis.opendocument.text application/vnd.oasis.opendocument.graphics-flat-xml"),
    (
        "text",
        "text/plain text/plain;charset=utf-8 TEXT/CSV text/calendar text/markdown application/rtf application/json",
    ),
    ("html", "text/html application/xhtml+xml"),
    ("image", "image/png image/svg+xml image/anything"),
    ("audio", "audio/mpeg application/ogg"),
    ("video", "video/mp4"),
    ("archive", "application/zip application/x-zip-compressed application/vnd.rar application/x-7z-compressed"),
    ("email", "message/rfc822 application/vnd.ms-outlook"),
    ("ebook", "application/epub+zip"),
]
#: Content types of texts with formats of their own, of programs that few people have.
OTHERS = "vnd.dbf wordperfect hwp haansofthwpx kml docbook geo+json bibtex endnote ipynb iwork jats pubmed research-info opml"


@pytest.mark.parametrize(
    ("kind", "said", "name"),
    [
        *((kind, said, "x") for kind, types in KINDS for said in types.split()),
        # The name counts only if the upload said nothing.
        *(("word", said, "Plan.DOCX") for said in (UNKNOWN, "", "binary/octet-stream", None, 7, "x" * 9999)),
        ("pdf", "application/pdf", "plan.docx"),
        (None, UNKNOWN, "plan"),
        (None, UNKNOWN, None),
        (None, "application/x-unheard-of", "plan.pdf"),
        (None, "\0\ud800", "\0"),
    ],
)
def test_kind_of_a_file_follows_its_content_type_then_its_name(kind: str | None, said: Any, name: Any) -> None:
    assert kind_of_file(SimpleNamespace(contentType=said, filename=name)) == kind


def test_types_with_a_text_have_a_kind_except_rare_ones() -> None:
    without = {said for said in READ if kind_of_file(SimpleNamespace(contentType=said)) is None}
    assert {said for said in without if not any(other in said for other in OTHERS.split())} == set()


def test_value_that_is_no_file_has_no_kind() -> None:
    assert kind_of_file(None) is None
