"""The command pgcatalog verify, as an administrator runs it."""

from pathlib import Path
from plone.pgcatalog.i18n import english
from plone.pgcatalog.zmi.overview import FiguresView
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.relation import damage
from typing import Any

import json
import pytest
import transaction


pytestmark = pytest.mark.slow


@pytest.fixture
def zope_conf(dsn: str, tmp_path: Path) -> str:
    """A zope.conf for a site with content."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        populate(portal)
        transaction.commit()
    return write_conf(tmp_path, dsn)


def test_verify_names_and_repairs_differences(zope_conf: str, dsn: str) -> None:
    sound = pgcatalog("verify", zope_conf, "--site", "plone")
    assert (sound.returncode, sound.stdout) == (0, "15 objects compared: 0 differences\n"), sound.stderr
    damage(dsn, "DELETE FROM {} WHERE get_id = 'page'")
    damaged = pgcatalog("verify", zope_conf, "--site", "plone", "--json")
    assert damaged.returncode == 1
    assert json.loads(damaged.stdout)["differences"] == [
        {"path": "/plone/my_folder/page", "kind": "missing", "names": []}
    ]
    mended = pgcatalog("verify", zope_conf, "--site", "plone", "--repair")
    assert mended.returncode == 0
    assert mended.stdout.endswith("15 objects compared: 1 differences, 1 repaired\n")
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        # The Overview shows it.
        done, result = FiguresView(portal.portal_catalog, portal.REQUEST).job("verify")
        assert done
        assert english(result) == "15 objects compared, 1 differences repaired."
    assert pgcatalog("verify", zope_conf, "--site", "plone").returncode == 0


def test_verify_continues_after_a_folder_with_missing_objects(zope_conf: str, dsn: str) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.my_folder.getOrdering().notifyAdded("gone")
        transaction.commit()
    found = pgcatalog("verify", zope_conf, "--site", "plone", "--repair")
    assert found.stdout == "dangling: /plone/my_folder/gone\n15 objects compared: 1 differences\n", found.stderr
    assert found.returncode == 1


def test_unknown_site_is_a_clear_error(zope_conf: str) -> None:
    for site in ("nowhere", "acl_users"):
        result: Any = pgcatalog("verify", zope_conf, "--site", site)
        assert result.returncode == 2
        assert f"there is no site '{site}'" in result.stderr
