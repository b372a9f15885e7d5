"""A question finds pages about its subject in other languages, though its model finds texts in the same language nearer."""

from benchmarks.meaning_quality import by_vectors
from plone.pgcatalog.meaning.calibration import general_questions
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import serving
from tests.integration.meanings import page
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import site as site
from tests.integration.vectors import work
from typing import Any
from zlib import crc32

import json
import pytest
import transaction


SUBJECTS = ("leave", "parking", "payroll", "printing", "training", "travel")
LANGUAGES = ("english", "deutsch")
#: Pages of each subject in each language: enough texts for the mean of a language.
PAGES = 4


def embed(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Return vectors of what all texts have in common, of language, of subject, and of noise for the general questions."""
    data = []
    for number, text in enumerate(request["input"]):
        noise = [
            (crc32(f"{text}{axis}".encode()) % 100 - 50) / 100 if text in general_questions() else 0 for axis in "xyz"
        ]
        about = [0.8 * (name in text) for name in LANGUAGES] + [0.6 * (name in text) for name in SUBJECTS]
        data.append({"index": number, "embedding": [1.0, *about, *noise]})
    return 200, {}, json.dumps({"model": "test", "data": data}).encode()


@pytest.mark.parametrize("least", [0.0, 0.8], ids=["calibrated", "least similarity set by the site"])
def test_pages_about_a_subject_are_nearest_in_each_language(site: Any, least: float) -> None:
    portal = site[0]
    about: dict[str, set[str]] = {subject: set() for subject in SUBJECTS}
    for subject in SUBJECTS:
        for language in LANGUAGES:
            for number in range(PAGES):
                id = f"{subject}-{language}-{number}"
                page(portal, id, id, f"{language} {subject}", language=language[:2])
                about[subject].add(id)
    transaction.commit()
    with serving(embed) as answers:
        set_embedder(portal, answers.url, meaning_threshold=least)
        work(site)
        calibration = current_vectors(portal).calibration
        assert calibration is not None
        assert len(calibration.languages) == len(LANGUAGES) - 1
        found = {
            (subject, language): {*by_vectors(portal, f"{language} {subject}")[: 2 * PAGES]}
            for subject in SUBJECTS
            for language in LANGUAGES
        }
    clear_embedder_state()
    for (subject, language), ids in found.items():
        # A similarity set by the site is one of the model's own vectors.
        assert (ids == about[subject]) == (not least), (subject, language)
