"""Suggestions from the site's own words: what a word that is being typed may become, and what a mistyped one may mean."""

from plone.pgcatalog.search.edits import allowed_edits
from plone.pgcatalog.search.edits import distance
from plone.pgcatalog.search.edits import SURE
from plone.pgcatalog.search.lexicon import query_words
from plone.pgcatalog.search.lexicon import storable
from plone.pgcatalog.search.lexicon import words
from plone.pgcatalog.search.vocabulary import INDEX
from plone.pgcatalog.search.vocabulary import Vocabulary
from typing import Any

import re


LIMIT = 10
#: So much of a text is looked at, and so many of its words; longer words are taken as they are.
MAX_TEXT, MAX_WORDS, MAX_LENGTH = 1000, 10, 40
#: With fewer suggestions than these the word that is being typed may have a typo.
FEW = 3
#: The nearest words to an unknown one that are looked up.
NEAREST = 10

#: A word with its wildcards, and a sign of exclusion in front.
_TOKEN = re.compile(r"-?[\w*?]+")
_OPERATORS = ("AND", "OR", "NOT")


def suggest(tool: Any, text: str, limit: int = LIMIT, **query: Any) -> list[str]:
    """Return up to *limit* words that begin with the last word of *text*, the most frequent first.

    They stand in what ``tool.searchResults(**query)`` finds, together with the other words of *text*.  When there are
    few, those come behind that begin so but for one letter.  One statement, or two.
    """
    if limit < 1:
        return []
    *before, last = storable(text)[-MAX_TEXT:].split() or [""]
    vocabulary = Vocabulary(tool, query | _context(" ".join(before), query))
    prefix = _prefix(vocabulary.lexicon, last)
    if not prefix:
        return []
    found = vocabulary.beginning_with(prefix, limit)
    if len(found) < min(FEW, limit) and len(prefix) > SURE + 1:
        near = vocabulary.nearly_beginning_with(prefix, limit)
        found += [word for word in near if word not in found][: limit - len(found)]
    return found


def _context(text: str, query: dict[str, Any]) -> dict[str, Any]:
    return {INDEX: text} if text and INDEX not in query else {}


def _prefix(lexicon: Any, token: str) -> str:
    """Return the last word of *token*, as far as it has been typed; "" when it is none."""
    token = token.replace("*", " ").replace("?", " ")
    parts = query_words(lexicon, token)
    # Chinese, say, is taken apart into overlapping words: the last one is not what is being typed.
    if not parts or len("".join(parts)) > len(token) + parts[-1].count("ss"):
        return ""
    return parts[-1].rstrip("*?") if len(parts[-1]) <= MAX_LENGTH else ""


def did_you_mean(tool: Any, text: str, **query: Any) -> str | None:
    """Return *text* with words of the site in place of unknown ones; None when nothing better is known.

    What is suggested finds something together with *query* on the catalog *tool*.  Words in capitals stay so.
    """
    text = storable(text)
    vocabulary = Vocabulary(tool, query)
    tokens = _plain_words(vocabulary.lexicon, text)
    known = vocabulary.known(tokens.values())
    unknown = sorted(set(tokens.values()) - known)
    if not unknown:
        return None
    better = _corrections(vocabulary, unknown)
    if not better:
        return None
    corrected = _replaced(text, {start: better[word] for (start, _), word in tokens.items() if word in better}, tokens)
    return corrected if tool.searchResults(**query, **{INDEX: corrected}, b_start=0, b_size=1) else None
