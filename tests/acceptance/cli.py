"""The command pgcatalog in a process of its own, and a zope.conf for it."""

from click.testing import CliRunner
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from tests.integration import site as sites
from typing import Any

import json
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


def answer(*words: str) -> tuple[int, Any]:
    """Return the exit code and the JSON of the command, run in this process: for commands without Zope."""
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, json.loads(result.stdout)
