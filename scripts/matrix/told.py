"""A plugin of pytest: tells each failed test, and why, as soon as it has failed."""

import pytest


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport, config: pytest.Config) -> None:
    """Called once for each report, where pytest-xdist gathers them."""
    if report.failed:
        writer = config.get_terminal_writer()
        writer.line(f"\n{'FAILED' if report.when == 'call' else 'ERROR'} {report.nodeid}\n{report.longreprtext}")
        writer.flush()
