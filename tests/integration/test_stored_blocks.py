"""Blocks of pages that look like values of zodb-json-codec are data."""

from pathlib import Path
from psycopg.types.json import Jsonb
from tests.integration import site as sites

import psycopg
import transaction


SECURITY = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"


def hostile_pages(dsn: str) -> set[str]:
    """Return the names that the query on the page *Security* finds."""
    query = SECURITY.read_text("utf-8").rpartition("```sql\n")[2].partition("```")[0]
    with psycopg.connect(dsn) as connection:
        return {".".join(names) for _, _, names in connection.execute(query)}


def test_block_with_a_marker_of_the_codec_stays_data(dsn: str, tmp_path: Path) -> None:
    """Whoever may edit a page may send any JSON in its blocks; nothing of it is called when the page is loaded."""
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
    # As it was stored without the package.
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE object_state SET state = jsonb_set(state, '{blocks}', %s) WHERE class_name = 'Document'",
            [Jsonb(blocks)],
        )
    assert hostile_pages(dsn) == {"os.mkdir"}
