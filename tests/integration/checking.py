"""``pgcatalog check``, as run by tests."""

from pathlib import Path
from plone.pgcatalog.cli.commands import main
from typing import Any

import click.testing
import json


CONF = """\
instancehome {folder}
<zodb_db main>
  mount-point /
  pool-size {pool_size}
  {storage}
</zodb_db>
"""
JSONB = """%import zodb_pgjsonb
  <pgjsonb>
    dsn {dsn}
    pool-max-size {pool_max}
  </pgjsonb>"""
FILE = """<filestorage>
    path {folder}/Data.fs
  </filestorage>"""


def check(dsn: str, *options: str) -> list[dict[str, str]]:
    """Return the findings in the database *dsn*, except those about the settings of the test server or its pooler."""
    result = click.testing.CliRunner().invoke(main, ["check", "--dsn", dsn, "--json", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    found: list[dict[str, str]] = json.loads(result.stdout)["findings"]
    assert result.exit_code == bool(found)
    # The test server runs without protection from crashes of the machine.
    own = ("fsync", "full_page_writes", "autovacuum")
    return [f for f in found if f["subject"] != "pooler" and f["text"].partition(" ")[0] not in own]


def write_conf(folder: Path, storage: str, pool_size: int = 7, **values: Any) -> str:
    conf = folder / "zope.conf"
    head, _, body = storage.rpartition("%import zodb_pgjsonb")
    text = CONF.format(folder=folder, pool_size=pool_size, storage=(head + body).format(folder=folder, **values))
    conf.write_text(("%import zodb_pgjsonb\n" if body != storage else "") + text)
    return str(conf)
