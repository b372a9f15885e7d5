"""Expansion of search words by words of the catalog, looked up before the search is compiled.

- A word with wildcards inside, such as ``w*ter``, is expanded to the words that match it.
- If the site has the setting, ``haus`` is expanded to words that contain it, such as ``Baumhaus``.

The words are read from the counts of ``term_statistics``.  For wildcards, the words of rows written since the count are
added.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import chain
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from typing import Any
from typing import TYPE_CHECKING

import re


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


# -- words with wildcards inside


#: Most words that a word with wildcards is expanded to (beyond, texts are compared with the pattern itself), and most words
#: that contain a word of a search: the most frequent ones.
MAX_FOUND = 200

#: The last code point: words that begin with a prefix are between the prefix and the prefix followed by LAST.
LAST = "\U0010ffff"


def find_globs(catalog: "Catalog", texts: Iterable[tuple[str, str]]) -> dict[str, tsquery.Globs]:
    """Return index name -> pattern -> matching words, for the words with wildcards inside.

    *texts* are (index name, search text).  Indexes without such words are left out; each other one costs one statement.
    Raises LimitExceeded, and the errors of a statement.
    """
    lexicons = catalog.configuration.lexicons
    patterns_of: dict[str, list[str]] = {}
    for name, text in texts:
        # Plone appends a wildcard to each word: a text with these alone need not be parsed.
        if "?" in text or any("*" in word[:-1] for word in text.split()):
            patterns_of.setdefault(name, []).extend(_patterns(tsquery.parse(lexicons[name], text)))
    return {
        name: _words_like(catalog, translator, list(dict.fromkeys(patterns)))
        for name, patterns in patterns_of.items()
        if patterns and isinstance(translator := catalog.translator(name), ZCTextIndexTranslator)
    }


def _patterns(node: Any) -> Iterator[str]:
    """Yield the words with wildcards inside of a parse tree *node*, which may be None."""
    kind = None if node is None else node.nodeType()
    if kind in ("AND", "OR"):
        for part in node.getValue():
            yield from _patterns(part)
    elif kind == "NOT":
        yield from _patterns(node.getValue())
    elif kind == "GLOB" and (pattern := tsquery.pattern_of(node)) is not None:
        yield pattern


def _words_like(catalog: "Catalog", translator: ZCTextIndexTranslator, patterns: Sequence[str]) -> tsquery.Globs:
    """Return pattern -> the words of the text index of *translator* that match it, sorted.

    The value is None for a pattern that more than MAX_FOUND words match, and for all patterns if the transaction has changed
    the catalog, or its words have never been counted.
    """
    view = catalog.search_view()
    state = view.read_state()
    rows = []
    if view.is_committed and state is not None and translator.column.name in state.columns:
        words = _statement(catalog.zoid, state.relation, translator.column, patterns)
        rows = view.fetch(lambda _: words, operation="words").value()
    words_of: dict[str, set[str]] = {pattern: set() for pattern in patterns} if (None, None) in rows else {}
    for pattern, word in rows:
        if pattern in words_of:
            words_of[pattern].add(word)
    few = {pattern: tuple(sorted(words)) for pattern, words in words_of.items() if len(words) <= MAX_FOUND}
    return {pattern: few.get(pattern) for pattern in patterns}


def _statement(catalog: int, relation: str, column: Column, patterns: Sequence[str]) -> Statement:
    prefixes = [tsquery.split_glob(pattern)[0] for pattern in patterns]
    likes = [tsquery.like_pattern(pattern) for pattern in patterns]
    beginnings = " | ".join(f"{quoted(prefix)}:*" for prefix in dict.fromkeys(prefixes))
    index = (catalog, column.name)
    params: list[Any] = [*index, relation, list(patterns), likes, beginnings]
    for pattern, prefix, like in zip(patterns, prefixes, likes, strict=True):
        params += [pattern, *index, prefix, prefix + LAST, like]
    # Each pattern has placeholders of its own, so that the planner sees its values.
    words = " UNION ALL ".join(
        [read_statement("fulltext", "words_like_one").format(limit=MAX_FOUND + 1)] * len(patterns)
    )
    sql = read_statement("fulltext", "words_like").format(relation=quote(relation), column=column.quoted, words=words)
    # Costly: the planner does not know that comparing the texts of all rows takes longer than reading their SQL index.
    return Statement(sql, tuple(params), is_costly=True)


# -- parts of words


#: Fewest letters of a word that is looked up inside others.
MIN_LETTERS = 3
#: Most words of a search that are looked up inside others: the first ones.
MAX_WORDS = 10
#: Word of a search -> the words that contain it.
Parts = dict[str, tuple[str, ...]]


def find_word_parts(catalog: "Catalog", texts: Iterable[tuple[str, str]]) -> Parts:
    """Return word -> the words of SearchableText that contain it; *texts* are (index name, search text).

    *catalog* must have that index.  One statement, or none without a suitable word.  Raises psycopg.Error.
    """
    translator = catalog.translator(SOURCE_INDEX)
    lexicon = translator.index.getLexicon()
    parts = list(
        dict.fromkeys(chain.from_iterable(_wanted(lexicon, text) for name, text in texts if name == SOURCE_INDEX))
    )[:MAX_WORDS]
    if not parts:
        return {}
    statement = " UNION ALL ".join(
        [read_statement("fulltext", "words_containing").format(limit=MAX_FOUND)] * len(parts)
    )
    column = catalog.zoid, translator.column.name
    params = [(part, *column, containing(part), containing(part), part) for part in parts]
    values = tuple(chain.from_iterable(params))
    words_of: dict[str, list[str]] = {}
    for part, word in catalog.search_view().fetch(lambda _: Statement(statement, values)).value():
        words_of.setdefault(part, []).append(word)
    return {part: tuple(words) for part, words in words_of.items()}


def _wanted(lexicon: Any, text: str) -> list[str]:
    """Return the single words of *text*, of MIN_LETTERS or more, that are neither excluded nor quoted."""
    tree = tsquery.parse(lexicon, text)
    if tree is None:
        return []
    singles = [words[0] for words in tsquery.plain_terms(lexicon, tree) if len(words) == 1]
    return [word for word in singles if len(word) >= MIN_LETTERS]


# -- edit distance of words; an edit inserts, deletes or replaces a letter, or swaps two adjacent ones


#: Escapes for the special characters of LIKE.
_LIKE = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
#: Letters at the beginning of a word that are assumed to be right when it is completed: an SQL index finds words by them.
EXACT_PREFIX = 2


def allowed_edits(word: str) -> int:
    """Return the most edits between *word* and a correction of it: 0 below 3 letters, 1 below 6, 2 below 10, else 3."""
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2 if len(word) < 10 else 3


def distance(one: str, other: str, most: int) -> int | None:
    """Return the number of edits between two words (optimal string alignment), None if there are more than *most*."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, theirs in enumerate(other, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                edits = min(edits, earlier[j - 2] + 1)
            row.append(edits)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def beginning(text: str) -> str:
    """Return the LIKE pattern for strings that begin with *text*."""
    return text.translate(_LIKE) + "%"


def containing(text: str) -> str:
    """Return the LIKE pattern for strings that contain *text*."""
    return "%" + beginning(text)


def near_beginnings(text: str) -> list[str]:
    """Return the LIKE patterns for words that begin with *text* but for one edit behind its first EXACT_PREFIX letters.

    The last letter is never dropped or replaced: a pattern without it would match all words that begin with the others.
    """
    patterns: list[str] = []
    for i in range(EXACT_PREFIX, len(text)):
        head, letter, rest = text[:i], text[i], text[i + 1 :]
        # In this order: a letter is missing in *text*; it is wrong; there is one too many; two letters are swapped.
        patterns.append(head.translate(_LIKE) + "_" + beginning(letter + rest))
        if rest:
            patterns.append(head.translate(_LIKE) + "_" + beginning(rest))
            patterns += [beginning(head + rest), beginning(head + rest[0] + letter + rest[1:])]
    return list(dict.fromkeys(patterns))


#: Letters at the beginning of a word whose deletions are indexed; see ``pgcatalog_deletions``.
HEAD = 6
#: Parts the words of a block; no word contains it.
SEPARATOR = "\2"


def near_pattern(word: str) -> str:
    """Return the regular expression of PostgreSQL for words that share a deletion of their first HEAD letters with *word*.

    It matches such a word, and a block of words (``pgcatalog_spellings``) with one.
    """
    head = word[:HEAD]
    deletions = {head[:i] + head[i + 1 :] for i in range(len(head))} | ({head} if len(head) < HEAD else set())
    end = f"(?:{SEPARATOR}|$)"
    # A word of fewer letters than HEAD has to end behind them.
    patterns = {re.escape(form) + end for form in deletions}
    for form in deletions:
        rest = end if len(form) + 1 < HEAD else ""
        for i in range(len(form) + 1):
            patterns.add(f"{re.escape(form[:i])}[^{SEPARATOR}]{re.escape(form[i:])}{rest}")
    return f"(?:^|{SEPARATOR})(?:{'|'.join(sorted(patterns))})"
