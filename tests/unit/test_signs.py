"""Words with signs: which ones a text has, and that a search for one has the same lexeme."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.lexicon import SIGNED
from plone.pgcatalog.fulltext.lexicon import signed_lexemes
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import tsvector_words
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.signs import MOST_SEARCHED
from plone.pgcatalog.fulltext.signs import signed_words
from plone.pgcatalog.fulltext.signs import SIGNS
from plone.pgcatalog.fulltext.typed import search_text
from plone.pgcatalog.fulltext.typed import with_exclusions
from tests.unit.lexicons import plone_lexicon

import pytest


#: Text -> its words with signs.
TEXTS = {
    "C++, C# and (F#), not C.": "C++ C# F#",
    "the .NET runtime": ".NET",
    "ls -l --all, x-y and a -- b": "-l --all",
    "Python 3.13.": "3.13",
    "§ 823, §§ 1 and §5": "§823 §§1 §5",
    "well-known e-mail": "",
    "node.js at AT&T": "node.js AT&T",
    "see /etc/passwd or me@example.org": "/etc/passwd me@example.org",
    "#tag @param": "#tag @param",
    "C++11 g++-12": "C++11 g++",
    "C++语言和C#": "C++ C#",
    "... -- + # a_b . §": "",
    f"a.{'b' * 60}": "",
}
LETTERS = st.sampled_from([*"".join(SIGNS.values()), *"ab1 ", "ö", "_", "数", "*", '"', "\0"])


@pytest.mark.parametrize("text", TEXTS)
def test_text_has_words_with_signs(text: str) -> None:
    assert signed_words([text], 99) == TEXTS[text].split()


@pytest.mark.parametrize("word", [word for found in TEXTS.values() for word in found.split() if word != "C++11"])
def test_typed_word_has_the_lexeme_of_the_stored_one(word: str) -> None:
    lexicon = plone_lexicon()
    [stored] = signed_lexemes(lexicon, [f"before {word.replace('§8', '§ 8')} behind"], 99)
    for typed in (word, word.lower(), f"some {word}"):
        for text in (search_text(typed), with_exclusions(f"{typed}*", is_completed=True)):
            assert signed_lexemes(lexicon, [text.replace("*", "")], MOST_SEARCHED) == [stored]


@given(st.lists(LETTERS, max_size=40).map("".join), st.integers(1, 3))
def test_words_with_signs_change_no_word_and_are_bounded(text: str, most: int) -> None:
    lexicon = plone_lexicon()
    signed, source = signed_lexemes(lexicon, [text], most), words(lexicon, [text])
    literal, _ = tsvector_literal(source, signed=signed)
    assert len(signed) <= most
    assert tsvector_words(literal) == source
    assert literal.count(SIGNED) == len(signed)
    assert all(set(word) & set("".join(SIGNS.values())) for word in signed_words([text], most))


def test_words_with_signs_have_no_room_in_a_full_tsvector() -> None:
    full = [f"{number:08d}" * 10 for number in range(20_000)]
    literal, trimmed = tsvector_literal(full, signed=[f"{SIGNED}c++"])
    assert trimmed
    assert SIGNED not in literal
