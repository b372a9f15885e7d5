"""Blocks of pages that look like values of zodb-json-codec are data."""

from pathlib import Path
from plone.pgcatalog.cli.commands import main
from psycopg.types.json import Jsonb
from tests.integration import site as sites
from tests.integration.checking import check
from tests.integration.checking import JSONB
from tests.integration.checking import write_conf
from ZODB.utils import u64

import click.testing
import math
import psycopg
import transaction


SECURITY = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"


def hostile_pages(dsn: str) -> set[str]:
    """Return the names that the query on the page *Security* finds."""
    query = SECURITY.read_text("utf-8").rpartition("```sql\n")[2].partition("```")[0]
    with psycopg.connect(dsn) as connection:
        return {".".join(names) for _, _, names in connection.execute(query)}


def test_block_with_a_marker_of_the_codec_stays_data(dsn: str, tmp_path: Path) -> None:
    """An editor of a page may send any JSON in its blocks; nothing of it is called when the page is loaded."""
    folder = tmp_path / "made"
    call = {"callable": {"@cls": ["os", "mkdir"]}, "args": {"@t": [str(folder)]}}
    blocks = {"a": {"@type": "slate", "hostile": {"@reduce": call}, "dates": [{"@dt": "2026-06-01T00:00:00+00:00"}]}}
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.invokeFactory("Document", "page", title="A page")
        portal.page.blocks = blocks
        transaction.commit()
    # Another opened database has caches of its own, which are cold.
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        assert portal.page.blocks == blocks
    assert not folder.exists()
    assert hostile_pages(dsn) == set()
    # As stored without the package.
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE object_state SET state = jsonb_set(state, '{blocks}', %s) WHERE class_name = 'Document'",
            [Jsonb(blocks)],
        )
    assert hostile_pages(dsn) == {"os.mkdir"}


def test_stored_block_that_names_code_is_found_and_repaired(dsn: str, tmp_path: Path) -> None:
    """As stored without the package: check names the page, and the command converts the block into data."""
    folder, other = tmp_path / "made", tmp_path / "other"
    call = {"callable": {"@cls": ["os", "mkdir"]}, "args": {"@t": [str(folder)]}}
    hidden = {
        "callable": {"@cls": ["builtins", "str"]},
        "args": {"@t": [{"@reduce": call | {"args": {"@t": [str(other)]}}}]},
    }
    large = {"n": 1e100, "not a number": math.nan, "@id": "a"}
    conf = write_conf(tmp_path, JSONB, dsn=dsn, pool_max=10)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for name, blocks in (("page", {"large": large, "marked": {"@t": "x"}}), ("fine", {"marked": {"@cls": 1}})):
            portal.invokeFactory("Document", name, title="A page", blocks=blocks)
        transaction.commit()
        oid = u64(portal.page._p_oid)
    assert check(dsn) == []
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE object_state SET state = jsonb_set(state, '{blocks}', (state -> 'blocks') || %s) WHERE zoid = %s",
            [Jsonb({"a": {"hostile": [{"@reduce": call}]}, "b": {"@reduce": hidden}}), oid],
        )
    [finding] = check(dsn)
    assert finding["text"].startswith(
        f"blocks of /plone/page (plone.app.contenttypes.content.Document 0x{oid:x}) may call code"
    )
    assert finding["remedy"].startswith(f"Run pgcatalog blocks with your zope.conf and --repair 0x{oid:x}")
    run = click.testing.CliRunner().invoke
    shown = run(main, ["blocks", conf])
    assert (shown.exit_code, shown.output.splitlines()[1]) == (1, "1 objects have blocks that name code")
    assert "os.mkdir" in shown.output
    assert run(main, ["blocks", conf, "--repair", "0x1"]).exit_code == 2
    repaired = run(main, ["blocks", conf, "--repair", f"0x{oid:x}"])
    assert (repaired.exit_code, repaired.output) == (0, "1 objects were repaired\nno blocks name code\n")
    assert check(dsn) == []
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        blocks = portal.page.blocks
        assert blocks["a"] == {"hostile": [{"@reduce": call}]}
        # The call of str is one of those that this package stores.
        assert "@reduce" in blocks["b"]
        assert math.isnan(blocks["large"].pop("not a number"))
        assert repr(blocks["large"].pop("n")) == "1e+100"
        assert (blocks["large"], blocks["marked"]) == ({"@id": "a"}, {"@t": "x"})
        assert portal.page.title == "A page"
        assert [brain.getPath() for brain in portal.portal_catalog(getId="page")] == ["/plone/page"]
    assert not folder.exists()
    assert not other.exists()
