"""The labelled set of ``benchmarks.labelled``: conditions for the validity of figures based on it."""

from benchmarks.labelled import labelled
from benchmarks.labelled import stems
from benchmarks.labelled import unanswered


PAGES, QUESTIONS = labelled()


def test_questions_are_half_in_german_and_a_third_across_languages() -> None:
    paraphrases = [question for question in QUESTIONS if not question.in_own_words]
    assert len({page.id for page in PAGES}) == len(PAGES) >= 300
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS) == 200
    assert len(paraphrases) == 120
    assert sum(question.language == "de" for question in paraphrases) == 60
    assert sum(question.crosses for question in paraphrases) == 40


def test_paraphrases_share_no_content_word_with_their_page_and_questions_in_own_words_all() -> None:
    for question in QUESTIONS:
        asked, answered = stems(question.text), stems(f"{question.page.title} {question.page.text}")
        assert asked, question.text
        assert asked <= answered if question.in_own_words else not asked & answered, question.text


def test_each_kind_of_question_without_an_answer_has_a_hundred() -> None:
    strange, near = unanswered()
    assert [len(set(strange)), len(set(near))] == [100, 100]
    assert not {*strange, *near} & {question.text for question in QUESTIONS}
