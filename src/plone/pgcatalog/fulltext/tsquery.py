"""Compiles a search text to tsquery and SQL.

The text is parsed by ZCTextIndex's own QueryParser and its tree translated node by node; what a node finds is
what ``executeQuery`` of the node (``Products.ZCTextIndex.ParseTree``) finds.  Where ZCTextIndex raises, this finds
what a user may expect:

* a text that is no valid query (``foo AND``, ``NOT foo``, ``(foo``) is taken as plain words and quoted phrases;
* wildcards at the beginning of a word are ignored;
* more than MAX_WORDS words, or MAX_PATTERNS of them with wildcards elsewhere than at their end, are refused;
* a text without words (only stop words) finds nothing.

Phrases, and single words in quotes, are taken to the letter: neither other forms nor synonyms of them are found.

A site's synonyms and stop words make a query find more, never less: they count for words that are wanted, not for
those it excludes.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from itertools import islice
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.fulltext.ranking import Term
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.fulltext.tuning import Words
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


#: Words of a search text.  Each is looked up, and compared with the rows that are found.
MAX_WORDS = 1000

#: Words of a search text with wildcards elsewhere than at their end.  Those whose words are not known are compared with
#: each word of each text that has one with their beginning.
MAX_PATTERNS = 10

#: Lexemes of a tsquery.  Before GIN reads anything it evaluates the tsquery once for each of them: that grows with the
#: square.  More are searched for by several ones.
MAX_LEXEMES = 64

#: Words of a query that it is ranked by, the first ones: each is looked for in every row that is found.
MAX_RANKED = 20

#: Words that are operators, in any case, unless they are quoted.
KEYWORDS = ("AND", "OR", "NOT")
_WILDCARDS = "*?"
#: What stands in quotes, or between blanks, parentheses and single quotation marks.
_PLAIN = re.compile(r'-*"[^"]*"|[^\s()"]+')
_LIKE = str.maketrans({"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"})


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a query: what it finds as SQL, and if a tsquery can say the same, the tsquery.

    ``rank`` are the words the clause wants (not those it excludes); empty if there is nothing to rank by.  ``size`` is
    the number of lexemes in the tsquery.  ``kept`` is the condition for rows without the words that the clause excludes.
    ``has_meaning`` is False for stop words alone.
    """

    condition: Condition
    tsquery: str | None = None
    rank: tuple[Term, ...] = ()
    size: int = 0
    kept: Condition = EVERYTHING
    has_meaning: bool = True


#: Word with wildcards -> all words of the catalog that are like it; None for one of which nobody knows them.
Globs = Mapping[str, tuple[str, ...] | None]
#: Returns groups of lexemes: see ``Term.related``.
Related = Callable[[str], tuple[tuple[str, ...], ...]]

#: What a search finds that can find nothing.
NO_CLAUSE = Clause(NOTHING)


def compile_text(
    lexicon: Any,
    text: str,
    column: Column,
    meaning: Meaning | None = None,
    related: Related | None = None,
    globs: Globs = MappingProxyType({}),
) -> Clause:
    """Return what *text* finds in the tsvector *column* with the words of *lexicon*.

    *meaning* says what else its words find, and *related* which lexemes of other forms of a word do; None for nothing.
    *globs* are the words that are like those with wildcards, as far as they are known.  Raises LimitExceeded.
    """
    tree = parse(lexicon, text)
    if meaning is None:
        compiler = _Compiler(lexicon, column, related, globs)
    else:
        compiler = _TunedCompiler(lexicon, column, meaning, related, globs)
    clause = None if tree is None else compiler.whole(tree)
    return clause or NO_CLAUSE


def parse(lexicon: Any, text: str) -> Any:
    """Return the parse tree of *text*, None if it has no words.  Never writes to *lexicon*.

    Raises LimitExceeded for more than MAX_WORDS words, or MAX_PATTERNS with wildcards elsewhere than at their end.
    """
    for attempt in (str, plain_words):
        try:
            return _Parser(_ParserLexicon(lexicon)).parseQuery(attempt(text))
        except (ParseError, RecursionError):
            continue
    return None


def plain_words(text: str) -> str:
    """Return *text* without query syntax but quotes; the words AND, OR and NOT stay if there are no others."""
    tokens = [token.lstrip("-") for token in _PLAIN.findall(text)]
    content = [token for token in tokens if token and token.upper() not in KEYWORDS]
    return " ".join(content or (f'"{token}"' for token in tokens))


def is_quoted(node: Any) -> bool:
    """Return whether a *node* of a parse tree, a single term, stood in quotes: it is taken to the letter."""
    return getattr(node, "is_quoted", False)


def is_capital(node: Any) -> bool:
    """Return whether a *node* of a parse tree, a single term, stood in capitals, such as IT or WHO: it is no stop word."""
    return getattr(node, "is_capital", False)


def as_word(word: str) -> str:
    """Return *word* as a search text that finds it: an operator in quotes, others with their other forms."""
    return f'"{word}"' if word.upper() in KEYWORDS else word


def split_glob(pattern: str) -> tuple[str, str]:
    """Return what a word with wildcards begins with, and the rest from its first wildcard on; those at its beginning do
    not count.
    """
    pattern = pattern.lstrip(_WILDCARDS)
    prefix = re.split(r"[*?]", pattern, maxsplit=1)[0]
    return prefix, pattern[len(prefix) :]


def like_pattern(pattern: str) -> str:
    """Return the LIKE pattern of a word with wildcards."""
    return re.sub(r"\*+", "*", pattern).translate(_LIKE)


def pattern_of(node: Any) -> str | None:
    """Return a *node* of a parse tree without wildcards at its beginning, if it is a word with one elsewhere than at its
    end, else None.
    """
    if node.nodeType() != "GLOB":
        return None
    prefix, rest = split_glob(node.getValue())
    return prefix + rest if prefix and rest.strip("*") else None


class _Parser(QueryParser):
    """Remembers which terms stood in quotes: the tree does not tell ``"egg"`` from ``egg``.  Counts words."""

    _words = _patterns = 0

    def _parseAtom(self) -> Any:
        token = str(self._tokens[self._index])
        node = super()._parseAtom()
        if node is not None:
            term = node.getValue() if node.nodeType() == "NOT" else node
            term.is_quoted = token.lstrip("-").startswith('"')
            term.is_capital = not term.is_quoted and len(token.strip(_WILDCARDS)) > 1 and token.isupper()
            self._words += len(term.getValue()) if term.nodeType() == "PHRASE" else 1
            if self._words > MAX_WORDS:
                raise LimitExceeded(f"a search text has more than {MAX_WORDS} words")
            self._patterns += pattern_of(term) is not None
            if self._patterns > MAX_PATTERNS:
                raise LimitExceeded(f"a search text has more than {MAX_PATTERNS} words with wildcards inside")
        return node


class _ParserLexicon:
    """What QueryParser wants of a lexicon, with words as str whatever the pipeline returns."""

    def __init__(self, lexicon: Any) -> None:
        self._lexicon = lexicon

    def parseTerms(self, text: str) -> list[str]:
        return query_words(self._lexicon, text)

    def isGlob(self, word: str) -> bool:
        return any(char in word for char in _WILDCARDS)


class _Compiler:
    """Makes clauses of the nodes of a parse tree; None for a node that counts as if it were not there."""

    def __init__(self, lexicon: Any, column: Column, related: Related | None, globs: Globs) -> None:
        self._lexicon = lexicon
        self._column = column
        self._related = related
        self._globs = globs

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
            return self._phrase(term_words(self._lexicon, value))
        related = None if is_quoted(node) else self._related
        if kind == "GLOB":
            return self._glob(value, related)
        words = term_words(self._lexicon, [value])
        return self._or(self._word(word, related) for word in words) if words else None

    def _clauses(self, nodes: Iterable[Any]) -> list[Clause]:
        return [clause for node in nodes if (clause := self.clause(node)) is not None]

    def _simple(self, tsquery: str, size: int, rank: tuple[Term, ...] = ()) -> Clause:
        return Clause(matches(self._column, tsquery), tsquery, rank, size)

    def _joined(self, operator: str, clauses: Iterable[Clause]) -> list[Clause]:
        """Return *clauses*, joined to as few as there may be: those that have one by a common tsquery."""
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
        """A word, or all that begin with it; and what is *related* to it, such as other forms."""
        term = Term(word, prefix, related(word) if related else ())
        lexemes = [term.tsquery, *(quoted(lexeme) for group in term.related for lexeme in group)]
        return self._simple(operation(" | ", lexemes), len(lexemes), (term,))

    def _and(self, nodes: Iterable[Any]) -> Clause:
        positive = self._clauses(self._wanted([n for n in nodes if n.nodeType() != "NOT"]))
        # What is excluded is so to the letter.
        literal = _Compiler(self._lexicon, self._column, None, self._globs)
        negative = literal._clauses(n.getValue() for n in nodes if n.nodeType() == "NOT")
        negative = [c for c in negative if c is not NO_CLAUSE]
        if not positive or NO_CLAUSE in positive:
            return NO_CLAUSE
        rank = ranked(positive)
        kept = all_of([clause.kept for clause in positive] + [~clause.condition for clause in negative])
        parts = self._joined(" & ", dict.fromkeys([*positive, *map(self._excluded, negative)]))
        if len(parts) == 1:
            return replace(parts[0], rank=rank, kept=kept)
        return Clause(all_of(p.condition for p in parts), rank=rank, kept=kept)

    def _wanted(self, nodes: list[Any]) -> list[Any]:
        """Return those of the positive *nodes* of an AND that a text has to match."""
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
        return self._simple(operation(" <-> ", map(quoted, words)), len(words), tuple(map(Term, words[:MAX_RANKED])))

    def _glob(self, pattern: str, related: Related | None) -> Clause:
        """A word with wildcards: the words that are like it, where they are known.

        Else what begins as the pattern does is looked up, then compared with all of it.
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
    """Heeds synonyms and stop words."""

    def __init__(self, lexicon: Any, column: Column, meaning: Meaning, related: Related | None, globs: Globs) -> None:
        super().__init__(lexicon, column, related, globs)
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
    """Return the words of a *node* that is a single term, if need be with one ``*`` at its end; None for others.

    That is how Plone's search page sends each word.  A term of several words is a phrase to the lexicon.
    """
    kind, value = node.nodeType(), node.getValue()
    if kind == "PHRASE":
        return tuple(term_words(lexicon, value))
    if kind == "ATOM" or (kind == "GLOB" and not any(char in value[:-1] for char in _WILDCARDS) and value[-1] == "*"):
        return tuple(term_words(lexicon, [value]))
    return None


def plain_terms(lexicon: Any, node: Any) -> list[Words]:
    """Return the words of each single term in the parse tree *node* that is neither excluded nor quoted."""
    terms = (plain_term(lexicon, term) for term in wanted_terms(node) if not is_quoted(term))
    return [words for words in terms if words]


def wanted_terms(node: Any) -> Iterator[Any]:
    """Yield the single terms in the parse tree *node*, without those it excludes."""
    kind = node.nodeType()
    if kind in ("AND", "OR"):
        for part in node.getValue():
            yield from wanted_terms(part)
    elif kind != "NOT":
        yield node


def words_with_forms(lexicon: Any, node: Any) -> list[str]:
    """Return those words of a single term of a parse tree whose other forms it finds, too."""
    kind, value = node.nodeType(), node.getValue()
    if kind == "PHRASE" or is_quoted(node):
        return []
    if kind == "ATOM":
        return term_words(lexicon, [value])
    prefix = value.lstrip(_WILDCARDS).rstrip("*")
    return [prefix] if prefix and not any(char in prefix for char in _WILDCARDS) else []


def wanted_words(lexicon: Any, node: Any) -> frozenset[str] | None:
    """Return the words of a parse tree *node* that wants them all and nothing else; None for any other query."""
    if node.nodeType() != "AND":
        words = plain_term(lexicon, node)
        return None if words is None else frozenset(words)
    parts = [wanted_words(lexicon, part) for part in node.getValue()]
    return None if None in parts else frozenset().union(*(part for part in parts if part is not None))


def ranked(clauses: Iterable[Clause]) -> tuple[Term, ...]:
    """Return what to rank by of several *clauses*: each word once, the first MAX_RANKED ones."""
    return tuple(islice(dict.fromkeys(term for clause in clauses for term in clause.rank), MAX_RANKED))


def operation(operator: str, operands: Iterable[str | None]) -> str:
    """Join *operands* of a tsquery, with parentheses."""
    parts = [operand for operand in operands if operand]
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"
