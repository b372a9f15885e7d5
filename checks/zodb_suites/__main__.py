"""Compares ZODB's own tests of storages, on zodb-pgjsonb without this package and with it; writes results and page.

python -m checks.zodb_suites
"""

from checks.zodb_suites.results import PAGE
from checks.zodb_suites.results import page
from checks.zodb_suites.results import run
from checks.zodb_suites.results import STORED
from checks.zodb_suites.results import summary
from checks.zodb_suites.results import table
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS

import json
import sys
import tempfile


with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=Path(folder)) as server:
    found = summary(run(server.createdb("zodb_suites")))
STORED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
PAGE.write_text(page(PAGE.read_text("utf-8"), found), "utf-8")
print(table(found))
if found["fail with only"]:
    print("Only with this package fail:", *found["fail with only"], sep="\n")
    sys.exit(1)
