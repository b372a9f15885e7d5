"""A plugin of pytest: prints each failed test with its reason, as soon as it has failed."""

import pytest


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport, config: pytest.Config) -> None:
    """Print the failure of *report*; called once for each report, in the process where pytest-xdist collects them."""
    if report.failed:
        writer = config.get_terminal_writer()
        writer.line(f"\n{'FAILED' if report.when == 'call' else 'ERROR'} {report.nodeid}\n{report.longreprtext}")
        writer.flush()
