"""The pages on performance say what the stored results say."""

from benchmarks.report import generated
from benchmarks.report import load
from benchmarks.report import PLOT
from benchmarks.report import SITES_PLOT


def test_the_pages_say_what_is_stored() -> None:
    for page, texts in generated(load()).items():
        for mark, text in texts.items():
            assert f"<!-- {mark} -->\n\n{text}\n\n<!-- end of {mark} -->" in page.read_text("utf-8"), (
                "run `make bench-page`"
            )
    assert PLOT.is_file()
    assert SITES_PLOT.is_file()
