"""Compounds are split where all parts are words of the site."""

from benchmarks import compounds as benchmark
from benchmarks.manuals import text_of_line
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.compounds import CompoundWords
from plone.pgcatalog.fulltext.compounds import find_parts
from plone.pgcatalog.fulltext.compounds import LINKS
from plone.pgcatalog.fulltext.compounds import LONGEST
from plone.pgcatalog.fulltext.compounds import MOST_PARTS
from plone.pgcatalog.fulltext.compounds import Split
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import tsvector_words
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.stemming import Stemming

import pytest


WORDS = ("antrag antrage amt bau ende formular gemeinde haus land rat recht schule sprache tag urlaub zeit").split()  # noqa: SIM905
#: Words that many others begin or end with, and that few documents have.
AFFIXED = [
    f"{before}{word}" for word in ("binde", "kaufe", "lasse", "melde", "sende", "teile") for before in ("ver", "be")
]
COUNTS = dict.fromkeys(WORDS, 50) | dict.fromkeys(AFFIXED, 5) | {"ver": 1, "rare": 2, "dessen": 90, "schulen": 20}
COUNTS |= dict.fromkeys(("weit", "weiter", "voll"), 50) | {"formulierung": 1}
LANGUAGES = sorted(LINKS)


def split_of(counts: dict[str, int], language: str = "de") -> Split:
    return CompoundWords({language: find_parts(counts, language, {"dessen", "weiter"}, {"dessen", "voll"})}).splits[
        language
    ]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("urlaubsantrag", "urlaub antrag"),
        ("urlaubsantrage", "urlaub antrag"),
        ("urlaubsantrags", "urlaub antrag"),
        ("bauantrag", "bau antrag"),
        ("bauantragsformulare", "bau antrag formular"),
        ("gemeinderat", "gemeind rat"),
        ("schulamt", "schul amt"),
        ("schulenamt", "schul amt"),
        ("schulsprache", "schul sprach"),
        ("landesrecht", "land recht"),
        ("tageszeit", "tag zeit"),
        ("urlaub", ""),
        ("antrag", ""),
        ("bauamt", ""),  # too short
        ("urlaubsgeld", ""),
        ("geldurlaub", ""),
        ("urlaubsrarheit", ""),
        ("urlaubsrare", ""),  # in too few documents for a short word
        ("urlaubsformulierung", "urlaub formulier"),
        ("urlaubsdessen", ""),  # a stop word
        ("weiterantrag", ""),  # no first part, also not as "weit" with a linking element
        ("urlaubsweiter", "urlaub weit"),
        ("urlaubsvoll", ""),  # no last part
        ("vollantrag", "voll antrag"),
        ("verantrag", ""),  # an affix
        ("urlaub2antrag", ""),
        ("urlaubs", ""),
        ("santragurlaub", ""),
        ("urlaub" * (MOST_PARTS + 1), ""),
        ("urlaub" * LONGEST, ""),
        ("日本語日本語日本語", ""),
        ("", ""),
    ],
)
def test_word_is_split_into_words_of_the_site(word: str, parts: str) -> None:
    assert " ".join(split_of(COUNTS)(word)) == parts


@given(st.data(), st.sampled_from(LANGUAGES))
def test_parts_and_links_are_the_word(data: st.DataObject, language: str) -> None:
    """A word made of parts is split, and its parts with linking elements are the word."""
    # "ende" is an ending, too: "antragende" is a form of "antrag".
    words = [word for word in WORDS if len(word) > 3 and word != "ende"]
    parts = data.draw(st.lists(st.sampled_from(words), min_size=2, max_size=3))
    links = [data.draw(st.sampled_from(LINKS[language])) for _ in parts[1:]]
    word = "".join(f"{part}{link}" for part, link in zip(parts, [*links, ""], strict=True))
    found = split_of(dict.fromkeys(WORDS, 50), language)(word)
    assert len(found) >= 2
    # A word of the site may be the stem of the last part.
    assert set(found) <= {*WORDS, *(stem(language, each) for each in WORDS)}


@given(st.text(max_size=80))
def test_any_text_is_split_without_error(word: str) -> None:
    assert isinstance(split_of(COUNTS)(word), tuple)


def test_more_frequent_parts_win() -> None:
    """By the geometric mean of the documents: Staub|ecken and Stau|becken."""
    counts = {"stau": 90, "becken": 90, "staub": 10, "ecken": 10}
    assert split_of(counts)("staubecken") == ("stau", "beck")
    counts |= {"staub": 900, "ecken": 900}
    assert split_of(counts)("staubecken") == ("staub", "eck")


def test_frequent_word_with_a_short_part_stays_whole() -> None:
    """Koehn and Knight: a word in more documents than the mean of its parts is simple."""
    assert split_of({"amt": 5, "leiter": 5, "amtsleiter": 3})("amtsleiter") == ("amt", "leit")
    assert split_of({"amt": 5, "leiter": 5, "amtsleiter": 90})("amtsleiter") == ()


def test_rare_word_is_a_part_if_many_compounds_begin_with_it() -> None:
    counts = COUNTS | dict.fromkeys(("pruf", "prufantrag", "prufhaus"), 1)
    assert split_of(counts)("prufformular") == ()
    assert split_of(counts | {"prufrecht": 1})("prufformular") == ("pruf", "formular")


#: Language -> words of a site; compounds of them; simple words.
EXAMPLES = {
    "nl": (
        "aanvraag vakantie formulier gemeente raad school plein stad bestuur huis werk dag boek kast belasting dienst bouw plan",
        "vakantie|aanvraag aanvraag|formulier gemeente|raad school|plein stad(s)|bestuur huis|werk boek(en)|kast"
        " belasting|dienst bouw|aanvraag werk|boek",
        "vergadering gemeenschap verandering schoonheid dagelijks besturen eigenlijk werkelijk openbare aanwezig",
    ),
    "sv": (
        "ansökan semester formulär kommun råd skola gård stad hus bok hylla dag tid arbete plats miljö plan skatt verk bygg",
        "semester|ansökan kommun|råd bok|hylla arbet(s)|plats|plan miljö|plan skatt|verk stad(s)|hus arbet(s)|tid semester|dag"
        " skatt(e)|plan",
        "förändring kommunal verksamhet arbetare möjlighet information vanligen svenska byggande ordentlig",
    ),
    "da": (
        "ansøgning ferie skema kommune råd skole gård by hus bog reol dag tid arbejde plads miljø plan skat bygge sag",
        "ferie|ansøgning ansøgning(s)|skema kommune|råd skole|gård ferie|plan arbejd(s)|plads miljø|plan bygge|sag ferie|dag"
        " skole|tid",
        "forandring kommunal virksomhed arbejder mulighed information sædvanlig bygning offentlig ordentlig",
    ),
    "no": (
        "søknad ferie skjema kommune råd skole gård by hus bok hylle dag tid arbeid plass miljø plan skatt bygge sak",
        "ferie|søknad søknad(s)|skjema kommune|råd skole|gård bok|hylle arbeid(s)|plass miljø|plan bygge|sak ferie|dag"
        " skole|tid",
        "forandring kommunal virksomhet arbeider mulighet informasjon vanligvis bygning offentlig ordentlig",
    ),
    "fi": (
        "hakemus loma lomake kunta valtuusto koulu piha kaupunki talo kirja hylly päivä aika työ paikka ympäristö vero rakennus",
        "loma|hakemus hakemus|lomake kirja|hylly koulu|piha työ|paikka koulu|päivä loma|aika kaupunki|talo"
        " rakennus|hakemus kirja|talo",
        "muutokset kunnallinen toiminta työntekijä mahdollisuus tiedotus tavallisesti rakentaa julkinen kaupungit",
    ),
}


@pytest.mark.parametrize("language", EXAMPLES)
def test_compounds_of_other_languages_are_split(language: str) -> None:
    site, composed, simple = (text.split() for text in EXAMPLES[language])
    [*vocabulary] = words(benchmark.LEXICON, [" ".join((*site, *simple))])
    split = split_of(dict.fromkeys(vocabulary, 20), language)
    for line in composed:
        word, parts = benchmark.in_parts(line)
        assert split(word) == tuple(stem(language, part) for part in parts), line
    assert {word: split(word) for word in words(benchmark.LEXICON, simple) if split(word)} == {}


def test_parts_have_the_positions_of_their_compound() -> None:
    stemming = Stemming("de", ("de", "en"), lambda: {"de": split_of(COUNTS)})
    source = ["der", "urlaubsantrag", "antrag"]
    text, _ = tsvector_literal(source, [(1, 2, "A")], stemming.lexemes_of("de"))
    assert text == "'der':1 'urlaubsantrag':2A 'antrag':3 '\2de:urlaub':2A '\2de:antrag':2A"
    assert tsvector_words(text) == source
    assert "\2" not in tsvector_literal(source, (), stemming.lexemes_of("en"))[0]


def test_query_for_a_compound_does_not_search_for_its_parts() -> None:
    with_parts = Stemming("de", ("de",), lambda: {"de": split_of(COUNTS)})
    assert with_parts.related("urlaubsantrag") == Stemming("de", ("de",)).related("urlaubsantrag")
    assert with_parts.marks("urlaubsantrag").isdisjoint(with_parts.part_marks("urlaubsantrag"))
    assert with_parts.part_marks("urlaubsantrag") == {"\2de:urlaub", "\2de:antrag"}


@pytest.mark.parametrize(
    ("name", "composed", "simple"),
    zip(benchmark.LISTS.values(), (300, 80, 150, 117), (300, 123, 150, 150), strict=True),
)
def test_words_split_by_hand_are_different_and_in_order(name: str, composed: int, simple: int) -> None:
    found = benchmark.labelled(name)
    assert len({word.word for word in found}) == composed + simple
    assert sum(bool(word.parts) for word in found) == composed
    for word in found:
        place = 0
        for part in word.parts:
            place = word.word.index(part, place) + len(part)
        assert word.word[place:] in ("", "s") or not word.parts, word


@pytest.mark.parametrize(
    ("found", "judgement"),
    [
        ((), "missed"),
        (("datei", "system", "pruf"), "right"),
        (("dateisystem", "prufer"), "coarse"),
        (("dat", "eisyst", "prufer"), "wrong"),
    ],
)
def test_split_is_compared_with_the_one_by_hand(found: tuple[str, ...], judgement: str) -> None:
    assert benchmark.Labelled("dateisystemprufer", ("datei", "system", "prufer")).judge(found) == judgement


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (r"Mit \fBls\fP(1) \- listen", "Mit ls(1) - listen"),
        (".SH BESCHREIBUNG", "BESCHREIBUNG"),
        (r".\" Kommentar", ""),
        (".nf", ""),
    ],
)
def test_manual_page_is_read_without_requests(line: str, text: str) -> None:
    assert text_of_line(line) == text
