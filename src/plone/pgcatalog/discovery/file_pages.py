"""Pages of files that have the words of a search: found by regular expressions in PostgreSQL, so that few characters are read.

The expressions find at least the words that the Highlighter marks, which decides.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from functools import lru_cache
from plone.pgcatalog.i18n import _
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from typing import Any

import re


#: Most bytes of texts that are searched for a page of hits; the snippets of further files are from their beginnings.
MOST_BYTES = 3_000_000
#: Most regular expressions, and letters of a word in one.
MOST_PATTERNS = 12
LONGEST_WORD = 60
PDF = "application/pdf"
#: A chunk of each hit, and its columns.
JOIN_CHUNKS = " CROSS JOIN LATERAL pgcatalog_chunk(source, text, hits.start, stop)"
CHUNK = ", chunk, is_last, last_page"
#: Number of the columns that ``with_pages`` adds for a file.
FILE_COLUMNS = 6

#: The first letter behind Latin, Greek and Cyrillic.
FIRST_OF_OTHERS = "\u0531"

#: Letters and digits in the syntax of character classes, without the scripts that have no spaces.
_LETTERS = "0-9A-Za-z_\u00c0-\u0dff\u0e80-\u10ff\u1200-\u1fff"
#: Characters that a text may have inside of a word: soft hyphens, characters of no width, and signs of letters.
_SIGNS = "[\u00ad\u0300-\u036f\u200b-\u200d]*"
_OTHER_SIGNS = "[\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200b-\u200d]*"
#: Characters whose normal forms are compared: those with cases, accents or ligatures.
_VARIED = (
    *range(0x41, 0x250),
    *range(0x370, 0x530),
    *range(0x1E00, 0x2000),
    *range(0xFB00, 0xFB07),
    *range(0xFF10, 0xFF5B),
)


@dataclass(frozen=True, slots=True)
class FilePage:
    """A page, slide or sheet of a file: its *number*, from 1, and the content type *kind* of the file."""

    number: int
    kind: str

    # Safe for untrusted code, as the snippet is that it belongs to.
    __allow_access_to_unprotected_subobjects__ = True

    @property
    def unit(self) -> str:
        """``page``, ``slide`` or ``sheet``."""
        if "presentation" in self.kind or "powerpoint" in self.kind:
            return "slide"
        return "sheet" if "spreadsheet" in self.kind or "excel" in self.kind else "page"

    @property
    def title(self) -> Any:
        """The message "Page 12"."""
        number = {"number": str(self.number)}
        if self.unit == "slide":
            return _("Slide ${number}", mapping=number)
        return _("Sheet ${number}", mapping=number) if self.unit == "sheet" else _("Page ${number}", mapping=number)

    def before(self, pages: int) -> "FilePage | None":
        """Return the page *pages* pages before this one; None in front of the file."""
        return FilePage(self.number - pages, self.kind) if pages < self.number else None

    def url(self, url: str) -> str | None:
        """Return the URL that opens the file of the object at *url* here, as browsers can for PDF; None for other files.

        ``@@display-file`` sends the primary file of an object for display; Plone's ``@@download`` would save it.  Volto passes on
        paths behind its slash only.
        """
        return f"{url}/@@display-file/#page={self.number}" if self.kind == PDF else None


class Snippet(str):
    """A snippet, as HTML; *page* is the page of the file that it is from, None if it is not from a file with pages."""

    __slots__ = ("page",)
    page: FilePage | None

    # Safe for untrusted code: it is a text.
    __allow_access_to_unprotected_subobjects__ = True

    def __new__(cls, html: str, page: FilePage | None = None) -> "Snippet":
        self = super().__new__(cls, html)
        self.page = page
        return self


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of the *text* of a page of a file; *has_before* and *has_behind*: the page has more text there."""

    number: int
    text: str
    has_before: bool
    has_behind: bool


@dataclass(frozen=True, slots=True)
class FileParts:
    """The *parts* of a file of the type *kind* that were found; *kind* is "" for a row without the text of a file."""

    kind: str
    has_pages: bool
    parts: tuple[FilePart, ...]

    @classmethod
    def of(cls, kind: str | None, has_pages: bool | None, *parts: Sequence[Any] | None) -> "FileParts":
        """Return the file of the last columns of a row of ``with_pages``."""
        found = () if parts[0] is None else zip(*(part or () for part in parts), strict=True)
        return cls(kind or "", bool(has_pages), tuple(FilePart(*part) for part in found))

    def page(self, number: int) -> FilePage | None:
        """Return the page *number* of the file; None if its text has no pages."""
        return FilePage(number, self.kind) if self.has_pages else None


def with_pages(
    hits: Statement, columns: Sequence[str], rids: Sequence[int], patterns: Sequence[str], is_beginning_enough: bool
) -> Statement:
    """Return *columns* of the statement *hits*, and columns for ``FileParts.of``.

    *hits* has rid, zoid and source, the stored text; files are searched in the order of *rids*.  With start and stop it has
    those of ``pgcatalog_chunk`` as well.  *is_beginning_enough*: no further page is searched if one at the beginning has all
    words.
    """
    sql = read_statement("discovery", "with_pages").format(
        hits=hits.sql,
        columns=", ".join(f"hits.{column}" for column in columns) + CHUNK * ("stop" in columns),
        chunks=JOIN_CHUNKS * ("stop" in columns),
        most_bytes=MOST_BYTES,
    )
    # A single one is compiled once for both values.
    anything = patterns[0] if len(patterns) == 1 else "|".join(f"(?:{pattern})" for pattern in patterns) or None
    return Statement(sql, (*hits.params, list(rids), list(patterns), anything, is_beginning_enough), hits.is_costly)


# -- regular expressions of PostgreSQL


def word_patterns(
    words: Iterable[str], prefixes: Iterable[str], globs: Iterable[str], phrases: Iterable[Sequence[str]]
) -> list[str]:
    """Return regular expressions of up to MOST_PATTERNS terms in a lexicon's form: of phrases, long words, and so on.

    They have groups without a capture only.
    """
    terms = [_phrase(phrase) for phrase in phrases]
    terms += [_bounded(word, _letters(word)) for word in sorted(words, key=lambda word: (-len(word), word))]
    terms += [_bounded(prefix, _letters(prefix), False) for prefix in sorted(prefixes)]
    terms += [_bounded(glob, _glob(glob)) for glob in sorted(globs)]
    return list(dict.fromkeys(terms))[:MOST_PATTERNS]


def _phrase(phrase: Sequence[str]) -> str:
    joined = f"[^{_LETTERS}]+".join(map(_letters, phrase[:MOST_PATTERNS]))
    return _bounded(phrase[0], joined, _has_spaces(phrase[-1]))


def _has_spaces(word: str) -> bool:
    return rx_all.search(word) is None


def _bounded(word: str, pattern: str, is_whole: bool = True) -> str:
    """Return *pattern*, of *word*, at the beginning of a word, and if *is_whole*, to its end; anywhere in scripts without
    spaces.
    """
    if not _has_spaces(word):
        return pattern
    return f"(?:^|[^{_LETTERS}]){pattern}" + (f"(?![{_LETTERS}])" if is_whole and len(word) <= LONGEST_WORD else "")


def _glob(glob: str) -> str:
    parts = re.split(r"([*?])", glob[:LONGEST_WORD])
    classes = {"*": f"[{_LETTERS}]*", "?": f"[{_LETTERS}]"}
    return "".join(classes.get(part) or _letters(part) for part in parts if part)


@lru_cache(1000)
def _letters(word: str) -> str:
    """Return the expression of texts whose normal form is *word*: any case, with accents, ligatures and signs."""
    single, several = _variants()
    pieces, place = [], 0
    word = word[:LONGEST_WORD]
    while place < len(word):
        letters = word[place : place + 2]
        first = _one(word[place], single)
        if letters in several:
            second = _one(letters[1], single)
            pieces.append(f"(?:{first}{_SIGNS}{second}|[{several[letters]}])")
            place += 2
        else:
            pieces.append(first)
            place += 1
    return (_SIGNS if word[:1] < FIRST_OF_OTHERS else _OTHER_SIGNS).join(pieces)


def _one(letter: str, variants: dict[str, str]) -> str:
    if letter in variants:
        return f"[{variants[letter]}]"
    return letter if letter.isalnum() else f"\\{letter}" if letter.isascii() else letter


@cache
def _variants() -> tuple[dict[str, str], dict[str, str]]:
    """Return normal form -> characters with it, of one letter and of two."""
    normal = I18NNormalizer()
    forms: dict[str, str] = {}
    for char in map(chr, _VARIED):
        if char.isalnum():
            for form in {*normal.process([char]), char.lower()}:
                forms[form] = forms.get(form, "") + char
    single = {form: chars if form in chars else chars + form for form, chars in forms.items() if len(form) == 1}
    return single, {form: chars for form, chars in forms.items() if len(form) == 2}
