"""Texts that visitors type into a search page, as search texts of the catalog.

Visitors exclude a word by a minus in front of it (``garden -fence``), or by NOT in capitals (``garden NOT fence``); a phrase
in quotes likewise.
"""

from itertools import pairwise
from plone.base.utils import munge_search_term
from plone.pgcatalog.fulltext.lexicon import storable_text
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from typing import Any

import re
import unicodedata


#: What stands in quotes, or between blanks and quotes; with a minus in front if there is one.
_TOKEN = re.compile(r'-?"[^"]*"|[^\s"]+')
_OPERATORS = ("AND", "OR", "NOT")
#: What is no part of an excluded word.
_NO_WORD = re.compile(r'[()"*?]+')
#: A sign inside of a word, behind a letter of a script without spaces.
_INNER_SIGN = re.compile(rf'(?<={rx_all.pattern})[^\w\s"()*?]+(?=\w)')
#: A search text without words: it finds nothing.
NO_WORDS = '""'


def plain_signs(text: str) -> str:
    """Return *text* with spaces for full-width signs, such as ``：`` and ``？``, and for signs behind a Chinese letter.

    Plone's splitter takes some for wildcards, and makes a phrase of what stands around others that no text has: it gives texts,
    but not queries, the last letter of a run as a word.  Full-width quotation marks become those of ASCII.
    """
    plain = "".join(char if char.isascii() or char.isalnum() else _plain_sign(char) for char in storable_text(text))
    return _INNER_SIGN.sub(" ", plain)


def _plain_sign(char: str) -> str:
    if char == "\uff02":
        return '"'
    is_full_width = "\uff01" <= char <= "\uff65"
    return " " if is_full_width or not {"*", "?"}.isdisjoint(unicodedata.normalize("NFKC", char)) else char


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return the words and phrases of *text*, and whether each is excluded; ``NOT word`` is ``-word``."""
    found: list[tuple[str, bool]] = []
    is_excluded = False
    for token, following in pairwise([*_TOKEN.findall(text), ""]):
        if token == "NOT" and following not in ("", *_OPERATORS) and not is_excluded:
            is_excluded = True
            continue
        has_minus = token[0] == "-" and token.strip("-") != ""
        found.append((f"-{token.lstrip('-')}" if is_excluded else token, is_excluded or has_minus))
        is_excluded = False
    return found


def search_text(text: str) -> str:
    """Return the query text of Plone's search page for *text*, without the words that it excludes."""
    tokens = _tokens(plain_signs(text))
    wanted = " ".join(
        token
        for (token, is_excluded), (_, is_followed) in pairwise([*tokens, ("", False)])
        if not is_excluded and not (token == "AND" and is_followed)
    )
    excluded = [_NO_WORD.sub(" ", token).strip(" -") for token, is_excluded in tokens if is_excluded]
    if not wanted and any(excluded):
        return NO_WORDS
    return "".join([munge_search_term(wanted), *(f' AND NOT "{word}"' for word in excluded if word)])


def with_exclusions(text: Any, is_completed: bool = False) -> Any:
    """Return *text*, which may have operators of ZCTextIndex, with ``-word`` for ``NOT word``; any other value as it is.

    With *is_completed* the asterisk at its end was added to what was typed: an excluded word is no beginning of others.
    """
    if not isinstance(text, str):
        return text
    text = plain_signs(text)
    tokens = _tokens(text)
    if not any(is_excluded for _, is_excluded in tokens):
        return text
    if all(is_excluded for _, is_excluded in tokens):
        return NO_WORDS
    words: list[str] = []
    for token, is_excluded in tokens:
        # After an operator NOT is ZCTextIndex's own.
        is_own = is_excluded and words and (words[-1].upper() in _OPERATORS or words[-1].endswith("("))
        words.append(f"NOT {token[1:]}" if is_own else token)
    if is_completed and tokens[-1][1]:
        words[-1] = words[-1].removesuffix("*")
    return " ".join(words)


def wanted_text(text: str) -> str:
    """Return *text* without the words that it excludes."""
    return " ".join(token for token, is_excluded in _tokens(text) if not is_excluded)
