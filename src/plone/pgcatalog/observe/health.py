"""What wants attention in the catalogs of a database, and how they are in one line."""

from datetime import timedelta
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.missing import sites_without_table
from plone.pgcatalog.fulltext.pg_textsearch_index import index_name
from plone.pgcatalog.protocols import Connection
from typing import Any


#: A transaction that is older keeps VACUUM from its work, and retired tables on the disk.
OLDEST_SECONDS = 3600
#: What the line says when there is nothing.
HEALTHY = "Healthy: nothing needs attention"
#: Sentences that the line about the health has room for.
NAMED = 3


def collect(connection: Connection, check: bool = False) -> dict[str, Any]:
    """Return what ``statistics.overview`` does, with rows, sites without a table, and ``attention``, as JSON data.

    *check* also counts damaged rows, for which all rows are read.
    """
    found = statistics.overview(statistics.executing(connection))
    catalogs = statistics.catalogs(connection, found["catalogs"])
    found["without_table"] = [{"catalog": zoid, "site": site} for zoid, site in sites_without_table(connection).items()]
    if check:
        for catalog in catalogs:
            catalog["rows_without_idx"] = statistics.rows_without_idx(connection, catalog["relation"])
        relations = [catalog["relation"] for catalog in catalogs]
        found["stale_objects"] = statistics.stale_objects(connection, relations)
    found["attention"] = attention(found)
    return found


def line(found: dict[str, Any]) -> str:
    """Return how the catalogs in *found* are, in one line."""
    sentences = attention(found)
    if sentences:
        more = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
        return f"Needs attention: {'; '.join(sentences[:NAMED])}{more}"
    return HEALTHY


def attention(found: dict[str, Any]) -> list[str]:
    """Return a sentence for everything that somebody should look at."""
    sentences = [
        f"{tool['site']}: the catalog has no table, as after the site was copied or imported; pgcatalog rebuild fills it"
        for tool in found.get("without_table", ())
    ]
    for catalog in found["catalogs"]:
        name = catalog.get("site") or catalog["relation"]
        rebuild = catalog["rebuild"]
        if catalog["unfilled"] and not (rebuild and rebuild["running"]):
            sentences.append(
                f"{name}: the catalog has only what was saved since the site was copied or imported;"
                " pgcatalog rebuild fills it"
            )
        if rebuild is not None and not rebuild["running"]:
            sentences.append(f"{name}: a rebuild was interrupted; pgcatalog rebuild resumes it")
        invalid = [index["name"] for index in catalog["indexes"] if not index["valid"]]
        sentences += [f"{name}: the index {index} was not built to its end" for index in invalid]
        if catalog["ranked_by_textsearch"]:
            sentences += [f"{name}: {sentence}" for sentence in textsearch_attention(catalog, found["pg_textsearch"])]
        if catalog.get("rows_without_idx"):
            sentences.append(f"{name}: {catalog['rows_without_idx']} rows have no metadata; see pgcatalog verify")
        failed = [job for job, state in sorted(catalog["jobs"].items()) if state["failed"]]
        sentences += [f"{name}: the last {job} failed; the tab Advanced says why" for job in failed]
    oldest = found["oldest"]
    if oldest is not None and oldest["seconds"] >= OLDEST_SECONDS:
        age = timedelta(seconds=round(oldest["seconds"]))
        sentences.append(f"the transaction of process {oldest['pid']} is {age} old, and keeps VACUUM from its work")
    if found.get("stale_objects"):
        sentences.append(f"{found['stale_objects']} objects have an idx and no row; pgcatalog vacuum clears it")
    return sentences


def textsearch_attention(catalog: dict[str, Any], version: str | None) -> list[str]:
    """Return what is to say of the index of pg_textsearch that *catalog* is to have."""
    wanted = index_name(catalog["relation"])
    if version is None or wanted not in [index["name"] for index in catalog["indexes"]]:
        return [f"the index {wanted} is not there; pgcatalog bm25 builds it, --drop forgets it"]
    return [f"pg_textsearch {version} {statistics.UNSAFE}"] if statistics.is_unsafe(version) else []
