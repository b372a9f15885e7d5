"""Parts of words: a search for ``haus`` that finds ``Baumhaus``, too, in sites that want it.

A text index knows whole words and their beginnings.  So a word of a query is looked up among the words that have been
counted, and the search is for those that contain it as well: before it is compiled, in one statement.
"""

from collections.abc import Mapping
from itertools import chain
from plone.pgcatalog.fulltext.edits import containing
from plone.pgcatalog.fulltext.text_queries import text_queries
from plone.pgcatalog.fulltext.tsquery import parse
from plone.pgcatalog.fulltext.tsquery import plain_terms
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any


#: Shorter words are not looked for inside others.
MIN_LETTERS = 3
#: Words of a search that are looked for inside others, the first ones.
MAX_WORDS = 10
#: Words that contain one of them, the most frequent ones.
MAX_FOUND = 200

#: The pattern is a value of its own in each, so that the planner can see it.
WORDS_WITH = """(
SELECT %s::text AS part, word FROM pgcatalog_words
WHERE catalog = %s AND text_column = %s AND ascii(word) > 2 AND word LIKE %s AND word <> %s
ORDER BY documents DESC, word LIMIT {limit}
)"""

#: Part -> the words that contain it.
Parts = dict[str, tuple[str, ...]]


def find_word_parts(catalog: Catalog, query: Mapping[str, Any]) -> Parts:
    """Return what the words that *query*, a whole query dict, wants are a part of.

    *catalog* has the text index.  Raises psycopg.Error.
    """
    translator = catalog.translator(SOURCE_INDEX)
    lexicon = translator.index.getLexicon()
    texts = [text for _, text in text_queries(query, {SOURCE_INDEX: lexicon})]
    asked = list(dict.fromkeys(chain.from_iterable(_wanted(lexicon, text) for text in texts)))[:MAX_WORDS]
    if not asked:
        return {}
    statement = " UNION ALL ".join([WORDS_WITH.format(limit=MAX_FOUND)] * len(asked))
    params = [(part, catalog.zoid, translator.column.name, containing(part), part) for part in asked]
    found: dict[str, list[str]] = {}
    for part, word in catalog.search_view().execute(statement, list(chain.from_iterable(params))):
        found.setdefault(part, []).append(word)
    return {part: tuple(words) for part, words in found.items()}


def _wanted(lexicon: Any, text: str) -> list[str]:
    """Return the single words of *text* that are to be found, and stand in no quotes."""
    tree = parse(lexicon, text)
    if tree is None:
        return []
    singles = [words[0] for words in plain_terms(lexicon, tree) if len(words) == 1]
    return [word for word in singles if len(word) >= MIN_LETTERS]
