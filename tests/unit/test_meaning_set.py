"""The labelled set of ``benchmarks.labelled``: conditions for the validity of figures based on it."""

from benchmarks.labelled import labelled
from benchmarks.labelled import Question
from benchmarks.labelled import stems
from benchmarks.labelled import unanswered

import pytest


PAGES, QUESTIONS = labelled()
PARAPHRASES = [question for question in QUESTIONS if not question.in_own_words]
OWN_WORDS = [question for question in QUESTIONS if question.in_own_words]


def test_there_are_enough_pages_and_questions_half_in_german_and_a_third_across_languages():
    assert len(PAGES) >= 300
    assert len({page.id for page in PAGES}) == len(PAGES)
    assert len(PARAPHRASES) == 120
    assert len(OWN_WORDS) == 80
    assert sum(question.language == "de" for question in PARAPHRASES) == 60
    assert sum(question.crosses for question in PARAPHRASES) == 40


def test_questions_are_unique():
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", PARAPHRASES, ids=lambda question: question.text)
def test_a_paraphrase_shares_no_content_word_with_its_page(question: Question):
    assert stems(question.text), "it has content words"
    assert not stems(question.text) & stems(f"{question.page.title} {question.page.text}")


@pytest.mark.parametrize("question", OWN_WORDS, ids=lambda question: question.text)
def test_a_question_in_own_words_has_only_words_of_its_page(question: Question):
    assert stems(question.text) <= stems(f"{question.page.title} {question.page.text}")


def test_each_kind_of_question_without_an_answer_has_a_hundred():
    strange, near = unanswered()
    assert [len(set(strange)), len(set(near))] == [100, 100]
    assert not {*strange, *near} & {question.text for question in QUESTIONS}
