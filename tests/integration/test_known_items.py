"""The benchmark of known items: vectors that it stores."""

from benchmarks.known_items import store
from pathlib import Path
from plone.pgcatalog.meaning.embedder import Embedder
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import serving


def test_vectors_are_stored_by_model_and_text(tmp_path: Path) -> None:
    texts = ["abba", "bcd", "abba"]
    with serving() as origin:
        expected = Embedder(origin.url, "one").embed_passages(texts)
        origin.requests.clear()
        for _ in range(2):
            with store(origin.url, tmp_path / "vectors") as answers:
                assert Embedder(answers.url, "one").embed_passages(texts) == expected
                assert Embedder(answers.url, "one").embed_passages(["cab", "bcd"])[1] == expected[1]
                assert Embedder(answers.url, "two").embed_passages(["bcd"])[0] == [expected[0][1]]
        assert [(request["model"], request["input"]) for request in origin.requests] == [
            ("one", ["abba", "bcd"]),
            ("one", ["cab"]),
            ("two", ["bcd"]),
        ]
    clear_embedder_state()
