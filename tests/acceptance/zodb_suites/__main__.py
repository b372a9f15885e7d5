"""Compares ZODB's own tests of storages, on zodb-pgjsonb without this package and with it, and stores the table.

python -m tests.acceptance.zodb_suites
"""

from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.acceptance.zodb_suites.results import run
from tests.acceptance.zodb_suites.results import STORED
from tests.acceptance.zodb_suites.results import table

import json
import tempfile


with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=Path(folder)) as server:
    found = table(run(server.createdb("zodb_suites")))
STORED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
print(STORED.read_text())
