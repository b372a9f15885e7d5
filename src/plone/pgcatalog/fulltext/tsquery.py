"""Compiles a search text to tsquery and SQL.

The text is parsed by ZCTextIndex's own QueryParser, and its tree is translated node by node.  A node finds the same rows as
its ``executeQuery`` (``Products.ZCTextIndex.ParseTree``).  Differences from ZCTextIndex:

* A text that is no valid query (``foo AND``, ``NOT foo``, ``(foo``) is read as plain words and quoted phrases.
* Wildcards at the beginning of a word are ignored.
* More than MAX_WORDS words, or MAX_PATTERNS words with wildcards elsewhere than at the end, raise LimitExceeded.
* A text without words (or, with a lexicon that removes stop words, of stop words only) finds nothing.

Phrases, and single words in quotes, are matched literally, without other forms and synonyms.

Synonyms and stop words of a site add rows to those of a query, and do not apply to excluded words.  The exception is a query
of stop words only on a search page (``Meaning.has_phrases``).
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from itertools import groupby
from itertools import islice
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.fulltext.lexicon import whole_forms
from plone.pgcatalog.fulltext.places import written_words
from plone.pgcatalog.fulltext.ranking import Term
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.fulltext.whole_words import dashed
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.sql.predicate import matches
from Products.ZCTextIndex.ParseTree import ParseError
from Products.ZCTextIndex.QueryParser import QueryParser
from types import MappingProxyType
from typing import Any

import re


#: Most words of a search text.  Each is looked up, and compared with the rows that are found.
MAX_WORDS = 1000

#: Most words of a search text with wildcards elsewhere than at the end.  Unless the words that match were looked up, each
#: pattern is compared with all words of all texts that have a word with its prefix.
MAX_PATTERNS = 10

#: Most lexemes of a tsquery.  Before GIN reads anything it evaluates the tsquery once per lexeme, so the time grows with the
#: square of their number; more lexemes become several tsqueries.
MAX_LEXEMES = 64

#: Most words of a query that are ranked by, the first ones: each is looked up in every row that is found.
MAX_RANKED = 20

#: Words that are operators unless they are quoted, in upper and lower case.
KEYWORDS = ("AND", "OR", "NOT")
_WILDCARDS = "*?"
#: A phrase in quotes; or a run of characters other than blanks, parentheses and quotation marks.
_PLAIN = re.compile(r'-*"[^"]*"|[^\s()"]+')
_LIKE = str.maketrans({"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"})


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a compiled query.

    - ``condition``: the SQL condition of its rows.
    - ``tsquery``: a tsquery that finds the same rows, None if there is none.
    - ``rank``: the terms to rank by, without the excluded words; may be empty.
    - ``size``: the number of lexemes in the tsquery.
    - ``not_excluded``: the condition of the rows without the excluded words.
    - ``has_meaning``: False for a query of stop words only.
    """

    condition: Condition
    tsquery: str | None = None
    rank: tuple[Term, ...] = ()
    size: int = 0
    not_excluded: Condition = EVERYTHING
    has_meaning: bool = True


#: Word with wildcards -> all words of the catalog that match it; None if they are unknown or too many.
Globs = Mapping[str, tuple[str, ...] | None]
#: Function from a word to groups of lexemes; see ``Term.related``.
Related = Callable[[str], tuple[tuple[str, ...], ...]]

#: The clause of a search that finds nothing.
NO_CLAUSE = Clause(NOTHING)


def compile_text(
    lexicon: Any,
    text: str,
    column: Column,
    meaning: Meaning | None = None,
    related: Related | None = None,
    globs: Globs = MappingProxyType({}),
    has_whole_words: bool = False,
) -> Clause:
    """Return the clause that searches for *text* in the tsvector *column*, with the words of *lexicon*.

    - *meaning*: synonyms and stop words, or None.
    - *related*: a function that returns the lexemes of other forms of a word, or None.
    - *globs*: the words that match words with wildcards, as far as they were looked up.
    - *has_whole_words*: whether *column* has the words of ``lexicon.words_besides``.

    Raises LimitExceeded.
    """
    tree = parse(lexicon, text)
    if meaning is None:
        compiler = _Compiler(lexicon, column, related, globs, has_whole_words)
    else:
        compiler = _TunedCompiler(lexicon, column, meaning, related, globs, has_whole_words)
    clause = None if tree is None else compiler.whole(tree)
    return clause or NO_CLAUSE


def parse(lexicon: Any, text: str) -> Any:
    """Return the parse tree of *text*, None if it has no words.  Never writes to *lexicon*.

    Raises LimitExceeded for more than MAX_WORDS words, or more than MAX_PATTERNS with wildcards elsewhere than at the end.
    """
    for attempt in (str, plain_words):
        try:
            return _Parser(_ParserLexicon(lexicon)).parseQuery(attempt(text))
        except (ParseError, RecursionError):
            continue
    return None


def plain_words(text: str) -> str:
    """Return *text* without query syntax other than quotes; if it has no words but AND, OR and NOT, these in quotes."""
    tokens = [token.lstrip("-") for token in _PLAIN.findall(text)]
    content = [token for token in tokens if token and token.upper() not in KEYWORDS]
    return " ".join(content or (f'"{token}"' for token in tokens))


def is_quoted(node: Any) -> bool:
    """Return whether *node*, a single term of a parse tree, was in quotes, so that it is matched literally."""
    return getattr(node, "is_quoted", False)


def whole_forms_of(lexicon: Any, node: Any) -> list[str]:
    """Return the whole words of *node*, a single term of a parse tree, that it is also found by; see ``whole_words``."""
    word = getattr(node, "written", "")
    if node.nodeType() == "GLOB":
        word = word[:-1] if word[-1:] == "*" else ""
    is_word = [*written_words(word)] == [(0, len(word))] and not set(_WILDCARDS) & set(word)
    return whole_forms(lexicon, word) if is_word else []


def is_capital(node: Any) -> bool:
    """Return whether *node*, a single term of a parse tree, was in capitals (IT, WHO), so that it is no stop word."""
    return getattr(node, "is_capital", False)


def as_word(word: str) -> str:
    """Return the search text that finds *word*: an operator in quotes, any other word as it is."""
    return f'"{word}"' if word.upper() in KEYWORDS else word


def split_glob(pattern: str) -> tuple[str, str]:
    """Return (prefix, rest from the first wildcard on) of a word with wildcards, without wildcards at its beginning."""
    pattern = pattern.lstrip(_WILDCARDS)
    prefix = re.split(r"[*?]", pattern, maxsplit=1)[0]
    return prefix, pattern[len(prefix) :]


def like_pattern(pattern: str) -> str:
    """Return the LIKE pattern of a word with wildcards."""
    return re.sub(r"\*+", "*", pattern).translate(_LIKE)


def pattern_of(node: Any) -> str | None:
    """Return the word of *node*, without wildcards at its beginning, if it has one elsewhere than at its end; else None."""
    if node.nodeType() != "GLOB":
        return None
    prefix, rest = split_glob(node.getValue())
    return prefix + rest if prefix and rest.strip("*") else None


class _Parser(QueryParser):
    """Parser that marks terms in quotes and in capitals, which the tree of its base class lacks, and limits words."""

    _words = _patterns = 0

    def _parseAtom(self) -> Any:
        token = str(self._tokens[self._index])
        node = super()._parseAtom()
        if node is not None:
            term = node.getValue() if node.nodeType() == "NOT" else node
            term.is_quoted = token.lstrip("-").startswith('"')
            term.written = token.lstrip("-").strip('"')
            term.is_capital = not term.is_quoted and len(token.strip(_WILDCARDS)) > 1 and token.isupper()
            self._words += len(term.getValue()) if term.nodeType() == "PHRASE" else 1
            if self._words > MAX_WORDS:
                raise LimitExceeded(f"a search text has more than {MAX_WORDS} words")
            self._patterns += pattern_of(term) is not None
            if self._patterns > MAX_PATTERNS:
                raise LimitExceeded(f"a search text has more than {MAX_PATTERNS} words with wildcards inside")
        return node


class _ParserLexicon:
    """Lexicon for QueryParser, with words as str even if the pipeline returns bytes."""

    def __init__(self, lexicon: Any) -> None:
        self._lexicon = lexicon

    def parseTerms(self, text: str) -> list[str]:
        return query_words(self._lexicon, text)

    def isGlob(self, word: str) -> bool:
        return any(char in word for char in _WILDCARDS)


class _Compiler:
    """Compiles the nodes of a parse tree to clauses; None for a node that is ignored."""

    def __init__(
        self, lexicon: Any, column: Column, related: Related | None, globs: Globs, has_whole_words: bool
    ) -> None:
        self._lexicon = lexicon
        self._column = column
        self._related = related
        self._globs = globs
        self._has_whole_words = has_whole_words

    def whole(self, tree: Any) -> Clause | None:
        """Return the clause of a whole query."""
        return self.clause(tree)

    def clause(self, node: Any) -> Clause | None:
        kind, value = node.nodeType(), node.getValue()
        if kind == "AND":
            return self._and(value)
        if kind == "OR":
            return self._or(self._clauses(value))
        if kind == "PHRASE":
            return self._whole(node, self._phrase(term_words(self._lexicon, value)))
        related = None if is_quoted(node) else self._related
        if kind == "GLOB":
            return self._whole(node, self._glob(value, related))
        words = term_words(self._lexicon, [value])
        return self._whole(node, self._or(self._word(word, related) for word in words)) if words else None

    def _whole(self, node: Any, clause: Clause) -> Clause:
        """Return *clause*, or the whole words of *node*, a single term."""
        forms = whole_forms_of(self._lexicon, node) if self._has_whole_words else []
        related = None if is_quoted(node) else self._related
        is_prefix = node.nodeType() == "GLOB"
        return self._or([clause, *(self._word(form, related, is_prefix) for form in forms)]) if forms else clause

    def _clauses(self, nodes: Iterable[Any]) -> list[Clause]:
        return [clause for node in nodes if (clause := self.clause(node)) is not None]

    def _simple(self, tsquery: str, size: int, rank: tuple[Term, ...] = ()) -> Clause:
        return Clause(matches(self._column, tsquery), tsquery, rank, size)

    def _joined(self, operator: str, clauses: Iterable[Clause]) -> list[Clause]:
        """Return *clauses*, those with a tsquery merged into as few tsqueries as MAX_LEXEMES allows."""
        clauses = list(clauses)
        packs: list[list[Clause]] = []
        for clause in (c for c in clauses if c.tsquery):
            if not packs or sum(c.size for c in packs[-1]) + clause.size > MAX_LEXEMES:
                packs.append([])
            packs[-1].append(clause)
        joined = [self._simple(operation(operator, [c.tsquery for c in p]), sum(c.size for c in p)) for p in packs]
        return [*joined, *(c for c in clauses if not c.tsquery)]

    def _excluded(self, clause: Clause) -> Clause:
        if clause.tsquery:
            return self._simple("!" + clause.tsquery, clause.size)
        return Clause(~clause.condition)

    def _word(self, word: str, related: Related | None, prefix: bool = False) -> Clause:
        """Return the clause of a word, or of all words that begin with it, and of its *related* lexemes."""
        term = Term(word, prefix, related(word) if related else ())
        lexemes = [term.tsquery, *(quoted(lexeme) for group in term.related for lexeme in group)]
        return self._simple(operation(" | ", lexemes), len(lexemes), (term,))

    def _and(self, nodes: Iterable[Any]) -> Clause:
        positive = self._clauses(self._wanted([n for n in nodes if n.nodeType() != "NOT"]))
        # Excluded words are matched literally.
        literal = _Compiler(self._lexicon, self._column, None, self._globs, has_whole_words=False)
        negative = literal._clauses(n.getValue() for n in nodes if n.nodeType() == "NOT")
        negative = [c for c in negative if c is not NO_CLAUSE]
        if not positive or NO_CLAUSE in positive:
            return NO_CLAUSE
        rank = ranked([*self._numbers(nodes), *positive])
        not_excluded = all_of([clause.not_excluded for clause in positive] + [~clause.condition for clause in negative])
        parts = self._joined(" & ", dict.fromkeys([*positive, *map(self._excluded, negative)]))
        if len(parts) == 1:
            return replace(parts[0], rank=rank, not_excluded=not_excluded)
        return Clause(all_of(p.condition for p in parts), rank=rank, not_excluded=not_excluded)

    def _wanted(self, nodes: list[Any]) -> list[Any]:
        """Return the positive *nodes* of an AND that a text must match."""
        return nodes

    def _or(self, clauses: Iterable[Clause]) -> Clause:
        alternatives = [c for c in clauses if c is not NO_CLAUSE]
        if not alternatives:
            return NO_CLAUSE
        rank = ranked(alternatives)
        parts = self._joined(" | ", dict.fromkeys(alternatives))
        return (
            replace(parts[0], rank=rank) if len(parts) == 1 else Clause(any_of(p.condition for p in parts), rank=rank)
        )

    def _phrase(self, words: list[str]) -> Clause:
        if not words:
            return NO_CLAUSE
        number = dashed(words) if self._has_whole_words else None
        terms = tuple(map(Term, ([number] if number else []) + words[:MAX_RANKED]))[:MAX_RANKED]
        return self._simple(operation(" <-> ", map(quoted, words)), len(words), terms)

    def _numbers(self, nodes: Iterable[Any]) -> Iterator[Clause]:
        """Yield a clause, to rank by, of each row of numbers in *nodes*: Plone's search page has 88 and 46 for 88-46."""
        terms = [plain_term(self._lexicon, node) or () for node in nodes] if self._has_whole_words else []
        for is_number, group in groupby(terms, lambda words: len(words) == 1 and words[0].isdigit()):
            if is_number and (number := dashed([word for (word,) in group])):
                yield Clause(EVERYTHING, rank=(Term(number),))

    def _glob(self, pattern: str, related: Related | None) -> Clause:
        """Return the clause of a word with wildcards.

        It searches for the words that match if they were looked up, else for texts with the prefix that match the pattern.
        """
        prefix, rest = split_glob(pattern)
        if not prefix:
            return NO_CLAUSE
        if not rest:
            return self._word(prefix, related)
        if not rest.strip("*"):
            return self._word(prefix, related, prefix=True)
        term = Term(prefix, prefix=True)
        words_like = self._globs.get(prefix + rest)
        if words_like is not None:
            return self._or(self._simple(quoted(word), 1, (term,)) for word in words_like)
        beginning = self._simple(term.tsquery, 1, (term,))
        matching = Condition(
            f"EXISTS (SELECT FROM unnest(tsvector_to_array({self._column.quoted})) AS lexeme WHERE lexeme LIKE %s)",
            (like_pattern(prefix + rest),),
            (self._column,),
        )
        return Clause(beginning.condition & matching, rank=beginning.rank)


class _TunedCompiler(_Compiler):
    """Compiler that applies synonyms and stop words."""

    def __init__(
        self,
        lexicon: Any,
        column: Column,
        meaning: Meaning,
        related: Related | None,
        globs: Globs,
        has_whole_words: bool,
    ) -> None:
        super().__init__(lexicon, column, related, globs, has_whole_words)
        self._meaning = meaning

    def whole(self, tree: Any) -> Clause | None:
        terms = tree.getValue() if tree.nodeType() == "AND" else [tree]
        if not self._meaning.has_phrases or not all(map(self._is_stop_word, terms)) or is_quoted(tree):
            return super().whole(tree)
        words = [word for term in terms for word in plain_term(self._lexicon, term) or ()]
        return replace(self._phrase(words) if len(terms) > 1 else NO_CLAUSE, has_meaning=False)

    def clause(self, node: Any) -> Clause | None:
        clause = super().clause(node)
        words = None if is_quoted(node) else plain_term(self._lexicon, node)
        alternatives = self._meaning.alternatives(words) if words else ()
        if clause is None or not alternatives:
            return clause
        return self._or([clause, *map(self._synonym, alternatives)])

    def _synonym(self, words: Words) -> Clause:
        return self._word(words[0], self._related) if len(words) == 1 else self._phrase(list(words))

    def _wanted(self, nodes: list[Any]) -> list[Any]:
        return [node for node in nodes if not self._is_stop_word(node)] or nodes

    def _is_stop_word(self, node: Any) -> bool:
        stop_words = self._meaning.stop_words
        return bool(stop_words) and not is_capital(node) and plain_term(self._lexicon, node) in stop_words


def plain_term(lexicon: Any, node: Any) -> Words | None:
    """Return the words of *node* if it is a single term, possibly with ``*`` at its end; else None.

    Plone's search page sends each word with ``*``.  A term that the lexicon splits into several words is a phrase.
    """
    kind, value = node.nodeType(), node.getValue()
    if kind == "PHRASE":
        return tuple(term_words(lexicon, value))
    if kind == "ATOM" or (kind == "GLOB" and not any(char in value[:-1] for char in _WILDCARDS) and value[-1] == "*"):
        return tuple(term_words(lexicon, [value]))
    return None


def plain_terms(lexicon: Any, node: Any) -> list[Words]:
    """Return the words of each single term below the parse tree *node* that is neither excluded nor quoted."""
    terms = (plain_term(lexicon, term) for term in wanted_terms(node) if not is_quoted(term))
    return [words for words in terms if words]


def wanted_terms(node: Any) -> Iterator[Any]:
    """Yield the single terms below the parse tree *node* that are not excluded."""
    kind = node.nodeType()
    if kind in ("AND", "OR"):
        for part in node.getValue():
            yield from wanted_terms(part)
    elif kind != "NOT":
        yield node


def words_with_forms(lexicon: Any, node: Any) -> list[str]:
    """Return the words of *node*, a single term of a parse tree, that also match in other forms."""
    kind, value = node.nodeType(), node.getValue()
    if kind == "PHRASE" or is_quoted(node):
        return []
    if kind == "ATOM":
        return term_words(lexicon, [value])
    prefix = value.lstrip(_WILDCARDS).rstrip("*")
    return [prefix] if prefix and not any(char in prefix for char in _WILDCARDS) else []


def wanted_words(lexicon: Any, node: Any) -> frozenset[str] | None:
    """Return the words of a parse tree *node* that requires all of them and nothing else; None for any other query."""
    if node.nodeType() != "AND":
        words = plain_term(lexicon, node)
        return None if words is None else frozenset(words)
    parts = [wanted_words(lexicon, part) for part in node.getValue()]
    return None if None in parts else frozenset().union(*(part for part in parts if part is not None))


def ranked(clauses: Iterable[Clause]) -> tuple[Term, ...]:
    """Return the first MAX_RANKED distinct terms to rank by of *clauses*."""
    return tuple(islice(dict.fromkeys(term for clause in clauses for term in clause.rank), MAX_RANKED))


def operation(operator: str, operands: Iterable[str | None]) -> str:
    """Return the non-empty *operands* of a tsquery joined by *operator*, in parentheses if there are several."""
    parts = [operand for operand in operands if operand]
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"
