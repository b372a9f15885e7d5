"""Translation of texts that visitors type into a search page to search texts of the catalog.

Visitors exclude a word, or a phrase in quotes, by a minus in front of it (``garden -fence``) or by NOT in capitals
(``garden NOT fence``).  Options of commands, such as ``-l`` and ``--help``, are words.
"""

from itertools import pairwise
from plone.base.utils import munge_search_term
from plone.pgcatalog import settings
from plone.pgcatalog.fulltext.lexicon import storable_text
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from typing import Any

import re
import unicodedata


#: A phrase in quotes, with a minus in front if there is one; or a run of characters other than blanks and quotes.
_TOKEN = re.compile(r'-?"[^"]*"|[^\s"]+')
_OPERATORS = ("AND", "OR", "NOT")
#: Characters that are removed from an excluded word.
_NO_WORD = re.compile(r'[()"*?]+')
#: Punctuation inside a word, behind a letter of a script without spaces.
_INNER_SIGN = re.compile(rf'(?<={rx_all.pattern})[^\w\s"()*?]+(?=\w)')
#: An option of a command: a minus and one letter or digit, or two of them and a word.
_OPTION = re.compile(r"-[A-Za-z0-9]\*?|--\w[^\s\"]*+")
#: A backslash in front of an option: for ZCTextIndex a minus excludes the word.
_NO_MINUS = "\\"
#: Plus signs behind a word, which Plone's search page removes, and the characters that stand for them and for a minus meanwhile.
_PLUS = re.compile(r"(?<=\w)\+{1,2}+(?![^\s\"])")
_MARKS = {"+": "\ue000", "-": "\ue001"}
_MARKED_PLUS = re.compile("(\ue000+)([*]?)")
#: A paragraph sign and the number that it belongs to.
_PARAGRAPH = re.compile(r"(§)\s++(?=\d)")
#: A search text without words, which finds nothing.
NO_WORDS = '""'


def plain_signs(text: str) -> str:
    """Return *text* with spaces for full-width signs, such as ``：`` and ``？``, and for signs behind a Chinese letter.

    - Plone's splitter reads some of these as wildcards.
    - Of the words around others it makes a phrase that no text contains: in a text the last letter of a run is a word of its
      own, in a query it is not.
    - Full-width quotation marks become ASCII ones.
    """
    plain = "".join(char if char.isascii() or char.isalnum() else _plain_sign(char) for char in storable_text(text))
    return _INNER_SIGN.sub(" ", plain)


def _plain_sign(char: str) -> str:
    if char == "\uff02":
        return '"'
    is_full_width = "\uff01" <= char <= "\uff65"
    return " " if is_full_width or not {"*", "?"}.isdisjoint(unicodedata.normalize("NFKC", char)) else char


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return (word or phrase, whether it is excluded) for each in *text*; ``NOT word`` becomes ``-word``."""
    found: list[tuple[str, bool]] = []
    is_excluded = False
    for token, following in pairwise([*_TOKEN.findall(text), ""]):
        if token == "NOT" and following not in ("", *_OPERATORS) and not is_excluded:
            is_excluded = True
            continue
        if settings.WORDS_WITH_SIGNS and _OPTION.fullmatch(token) and not is_excluded:
            found.append((_NO_MINUS + token, False))
            continue
        has_minus = token[0] == "-" and token.strip("-") != ""
        found.append((f"-{token.lstrip('-')}" if is_excluded else token, is_excluded or has_minus))
        is_excluded = False
    return found


def search_text(text: str) -> str:
    """Return the search text for *text*: as Plone's search page builds it, with ``AND NOT`` for each excluded word."""
    tokens = _tokens(plain_signs(text))
    wanted = " ".join(
        token
        for (token, is_excluded), (_, is_followed) in pairwise([*tokens, ("", False)])
        if not is_excluded and not (token == "AND" and is_followed)
    )
    excluded = [_NO_WORD.sub(" ", token).strip(" -") for token, is_excluded in tokens if is_excluded]
    if not wanted and any(excluded):
        return NO_WORDS
    return "".join([_munged(wanted), *(f' AND NOT "{word}"' for word in excluded if word)])


def _munged(text: str) -> str:
    """Return *text* as Plone's search page changes it, with the signs of words with signs, which find nothing: ``C*++``."""
    if not settings.WORDS_WITH_SIGNS or {"+", "§", _NO_MINUS}.isdisjoint(text):
        munged: str = munge_search_term(text)
        return munged
    text = _PARAGRAPH.sub(r"\1", _PLUS.sub(lambda signs: _MARKS["+"] * len(signs[0]), text))
    text = " ".join(
        token.replace("-", _MARKS["-"]) if token.startswith(f"{_NO_MINUS}-") else token for token in text.split(" ")
    )
    # An asterisk stands beside the word.
    munged = _MARKED_PLUS.sub(r"\2\1", munge_search_term(text))
    return munged.replace(_MARKS["+"], "+").replace(_MARKS["-"], "-")


def with_exclusions(text: Any, is_completed: bool = False) -> Any:
    """Return *text*, which may have operators of ZCTextIndex, with ``-word`` for ``NOT word``.

    A value that is no string is returned as it is.  *is_completed*: the asterisk at the end was not typed but added; it is
    removed from an excluded word.
    """
    if not isinstance(text, str):
        return text
    text = plain_signs(text)
    tokens = _tokens(text)
    if not any(is_excluded or token.startswith(_NO_MINUS) for token, is_excluded in tokens):
        return text
    if all(is_excluded for _, is_excluded in tokens):
        return NO_WORDS
    words: list[str] = []
    for token, is_excluded in tokens:
        # Behind an operator or a parenthesis NOT is an operator of ZCTextIndex.
        is_own = is_excluded and words and (words[-1].upper() in _OPERATORS or words[-1].endswith("("))
        words.append(f"NOT {token[1:]}" if is_own else token)
    if is_completed and tokens[-1][1]:
        words[-1] = words[-1].removesuffix("*")
    return " ".join(words)


def wanted_text(text: str) -> str:
    """Return *text* without the words that it excludes."""
    return " ".join(token.removeprefix(_NO_MINUS) for token, is_excluded in _tokens(text) if not is_excluded)
