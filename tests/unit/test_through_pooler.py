"""What `make test-pooler` makes of a report."""

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
    runs = {
        number: {"date": "2026-01-02", "storage": "1.19.0", "mark": "", "modules": found} for number in ("1.9", "1.18")
    }
    runs["1.18"]["modules"] = {"test_pool": found["test_rest"]}
    lines = table(runs).splitlines()
    assert "| | PgBouncer 1.9 | PgBouncer 1.18 |" in lines
    assert "| tests that fail | 2 | 0 |" in lines
    assert "| left out: it locks | 1 | 1 |" in lines
    assert lines[-4:] == ["Fail with 1.9:", "", "- `test_pool: test_begins`", "- `test_pool: test_writes[a]`"]
