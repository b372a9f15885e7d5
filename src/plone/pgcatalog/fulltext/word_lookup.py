"""Words that a search is for besides its own, looked up in the catalog before it is compiled.

Words with wildcards inside, as ``w*ter``, find the words that are like them; in sites that want it, ``haus`` finds
``Baumhaus``, too.  The words of a catalog have been counted some time ago (``term_statistics``).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Statement
from typing import Any
from typing import TYPE_CHECKING

import psycopg


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


# -- words with wildcards inside


#: Words that are like one with wildcards; of one with more, texts are compared with the pattern.  Words that contain one of a
#: search, the most frequent ones.
MAX_FOUND = 200

#: Words that begin so stand between this and LAST behind it: no letter of a word comes after it.
LAST = "\U0010ffff"


def find_globs(catalog: "Catalog", texts: Iterable[tuple[str, str]]) -> dict[str, tsquery.Globs]:
    """Return the words that are like those with wildcards inside, by text index; *texts* are (index name, search text).

    Text indexes whose text has none are left out.  One statement for each of the others.  Raises LimitExceeded, and what
    the view of a catalog raises for a statement.
    """
    lexicons = catalog.configuration.lexicons
    patterns_of: dict[str, list[str]] = {}
    for name, text in texts:
        # Plone ends each word with a wildcard: such a text is not parsed for this.
        if "?" in text or any("*" in word[:-1] for word in text.split()):
            patterns_of.setdefault(name, []).extend(_patterns(tsquery.parse(lexicons[name], text)))
    return {
        name: _words_like(catalog, translator, list(dict.fromkeys(patterns)))
        for name, patterns in patterns_of.items()
        if patterns and isinstance(translator := catalog.translator(name), ZCTextIndexTranslator)
    }


def _patterns(node: Any) -> Iterator[str]:
    """Yield the words of a parse tree *node*, None for no words, that have wildcards inside."""
    kind = None if node is None else node.nodeType()
    if kind in ("AND", "OR"):
        for part in node.getValue():
            yield from _patterns(part)
    elif kind == "NOT":
        yield from _patterns(node.getValue())
    elif kind == "GLOB" and (pattern := tsquery.pattern_of(node)) is not None:
        yield pattern


def _words_like(catalog: "Catalog", translator: ZCTextIndexTranslator, patterns: Sequence[str]) -> tsquery.Globs:
    """Return the words of the text index of *translator* that are like each of *patterns*; None where they are too many.

    None for each as long as the transaction has changed the catalog, and where the words have never been counted.
    """
    view = catalog.search_view()

    state = view.read_state()
    rows = []
    with suppress(psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        # A Zope of an older release may have made the tables, and this one only read.
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
    # Each pattern has values by itself, so that the planner can see them.
    words = " UNION ALL ".join([load_sql("words_like_one").format(limit=MAX_FOUND + 1)] * len(patterns))
    sql = load_sql("words_like").format(relation=quote(relation), column=column.quoted, words=words)
    return Statement(sql, tuple(params))


# -- parts of words


#: Shorter words are not looked for inside others.
MIN_LETTERS = 3
#: Words of a search that are looked for inside others, the first ones.
MAX_WORDS = 10
#: Part -> the words that contain it.
Parts = dict[str, tuple[str, ...]]


def find_word_parts(catalog: "Catalog", texts: Iterable[tuple[str, str]]) -> Parts:
    """Return the words that contain those of *texts*, (index name, search text), in the text index SearchableText.

    *catalog* has that index.  Raises psycopg.Error.
    """
    translator = catalog.translator(SOURCE_INDEX)
    lexicon = translator.index.getLexicon()
    parts = list(
        dict.fromkeys(chain.from_iterable(_wanted(lexicon, text) for name, text in texts if name == SOURCE_INDEX))
    )[:MAX_WORDS]
    if not parts:
        return {}
    statement = " UNION ALL ".join([load_sql("words_containing").format(limit=MAX_FOUND)] * len(parts))
    params = [(part, catalog.zoid, translator.column.name, containing(part), part) for part in parts]
    values = tuple(chain.from_iterable(params))
    words_of: dict[str, list[str]] = {}
    for part, word in catalog.search_view().fetch(lambda _: Statement(statement, values)).value():
        words_of.setdefault(part, []).append(word)
    return {part: tuple(words) for part, words in words_of.items()}


def _wanted(lexicon: Any, text: str) -> list[str]:
    """Return the single words of *text* that are to be found, and stand in no quotes."""
    tree = tsquery.parse(lexicon, text)
    if tree is None:
        return []
    singles = [words[0] for words in tsquery.plain_terms(lexicon, tree) if len(words) == 1]
    return [word for word in singles if len(word) >= MIN_LETTERS]


# -- how far a word is from another, in edits: a letter more, a letter less, another letter, two letters exchanged


#: LIKE's own signs, to be taken literally.
_LIKE = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
#: Letters at the beginning of a word that nobody mistypes, as far as completing it is concerned: an index finds by them.
EXACT_PREFIX = 2


def allowed_edits(word: str) -> int:
    """Return how many edits a word may be away from *word* to be meant by it: the shorter, the fewer."""
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2


def distance(one: str, other: str, most: int) -> int | None:
    """Return the number of edits between two words (optimal string alignment), None when there are more than *most*."""
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
    """Return the LIKE pattern of what begins with *text*."""
    return text.translate(_LIKE) + "%"


def containing(text: str) -> str:
    """Return the LIKE pattern of what has *text* in it."""
    return "%" + beginning(text)


def near_beginnings(text: str) -> list[str]:
    """Return the LIKE patterns of what begins with *text*, one edit behind its first EXACT_PREFIX letters aside.

    Its last letter is taken as it is: without it everything would fit that begins with the rest.
    """
    patterns: list[str] = []
    for i in range(EXACT_PREFIX, len(text)):
        head, letter, rest = text[:i], text[i], text[i + 1 :]
        # A letter is missing; it is another one, there is one too many, or it stands on the wrong side of the next.
        patterns.append(head.translate(_LIKE) + "_" + beginning(letter + rest))
        if rest:
            patterns.append(head.translate(_LIKE) + "_" + beginning(rest))
            patterns += [beginning(head + rest), beginning(head + rest[0] + letter + rest[1:])]
    return list(dict.fromkeys(patterns))
