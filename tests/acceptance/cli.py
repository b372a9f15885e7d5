"""The command pgcatalog in a process of its own or in this one, and a zope.conf for it."""

from click.testing import CliRunner
from click.testing import Result
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.target import main_storage
from tests.integration import site as sites
from typing import Any

import json
import pytest
import subprocess
import sys


ZOPE_CONF = """\
%define INSTANCE {instance}
%import zodb_pgjsonb
instancehome $INSTANCE
<zodb_db main>
  mount-point /
  <pgjsonb>
    dsn {dsn}
    cache-warm-pct 0
  </pgjsonb>
</zodb_db>
"""


def write_conf(folder: Path, dsn: str) -> str:
    """Write a zope.conf for the database *dsn* into *folder*, and return its path."""
    (folder / "etc").mkdir()
    (folder / "etc" / "site.zcml").write_text(sites.SITE_ZCML)
    conf = folder / "etc" / "zope.conf"
    conf.write_text(ZOPE_CONF.format(instance=folder, dsn=dsn))
    return str(conf)


def command(*args: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "plone.pgcatalog.cli", *args]


def pgcatalog(*args: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=300, check=False)


def invoke(*words: str) -> Result:
    """Run the command in this process, which saves the seconds of its start; it opens and closes its own database."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for module in ("site", "jobs"):
            patch.setattr(
                f"plone.pgcatalog.cli.{module}.open_zope",
                lambda conf: stack.enter_context(sites.opened_on(main_storage(conf).open())),
            )
        result = CliRunner().invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def answer(*words: str) -> tuple[int, Any]:
    """Return the exit code and the JSON of the command, run in this process."""
    result = invoke(*words, "--json")
    return result.exit_code, json.loads(result.stdout)
