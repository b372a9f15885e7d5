"""What `make test-pooler` makes of a report."""

from pathlib import Path
from tests.integration.through_pooler import modules_in
from tests.integration.through_pooler import nothing
from tests.integration.through_pooler import read_report
from tests.integration.through_pooler import table


REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">
<testcase classname="tests.integration.test_pool" name="test_reads" />
<testcase classname="tests.integration.test_pool" name="test_writes[a]"><failure message="no">…</failure></testcase>
<testcase classname="tests.integration.test_pool" name="test_begins"><error message="no">…</error></testcase>
<testcase classname="tests.integration.test_rest" name="test_session"><skipped message="it locks" /></testcase>
</testsuite></testsuites>"""


def test_what_failed_and_what_was_left_out_is_named() -> None:
    found = read_report(REPORT)
    assert found == {
        "test_pool": {"passed": 1, "failed": ["test_writes[a]", "test_begins"], "left out": {}},
        "test_rest": {"passed": 0, "failed": [], "left out": {"it locks": 1}},
    }
    first = {name: {"date": "2026-01-02"} | of for name, of in found.items()}
    later = {"test_rest": {"date": "2026-02-03"} | found["test_rest"], "test_pool": {"date": "2026-02-04"} | nothing()}
    runs = {
        "1.18": {"slow": {"storage": "1.19.0", "modules": later}, "": {"storage": "1.19.0", "modules": later}},
        "1.9": {"": {"storage": "1.19.0", "modules": first}},
    }
    lines = table(runs).splitlines()
    assert "| | PgBouncer 1.9 | PgBouncer 1.18 | PgBouncer 1.18 |" in lines
    assert "| tests | all | all | slow |" in lines
    assert "| date of the oldest | 2026-01-02 | 2026-02-03 | 2026-02-03 |" in lines
    assert "| of these without such a test | 0 | 1 | 1 |" in lines
    assert "| tests that fail | 2 | 0 | 0 |" in lines
    assert "| left out: it locks | 1 | 1 | 1 |" in lines
    assert lines[-4] == "Fail with PgBouncer 1.9, all:"
    assert lines[-2:] == ["- `test_pool: test_begins`", "- `test_pool: test_writes[a]`"]


def test_the_modules_asked_for_are_named(tmp_path: Path) -> None:
    for name in ("test_pool.py", "test_rest.py", "fixtures.py"):
        (tmp_path / name).touch()
    assert sorted(modules_in((str(tmp_path),))) == ["test_pool", "test_rest"]
    assert modules_in((f"{tmp_path}/test_rest.py::test_session",)) == ["test_rest"]
