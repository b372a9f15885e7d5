"""Cataloguing: the values of objects become pending entries, which the commit writes to the catalog."""

from collections.abc import Iterable
from plone.pgcatalog.core.configuration import Configuration
from plone.pgcatalog.files import texts
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.cached_attributes import CachedAttributes
from plone.pgcatalog.indexes.cached_attributes import MissingAttributes
from plone.pgcatalog.indexing.extract import Extraction
from plone.pgcatalog.indexing.extract import metadata_of
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import oid_of
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.queue import missing_attributes
from plone.pgcatalog.meaning.job import jobs_for
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.predicate import equals
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


def catalog_object(catalog: "Catalog", obj: Any, uid: str, idxs: Any = None, update_metadata: Any = True) -> int:
    """Put *obj* (an indexable wrapper) into *catalog*, under *uid*; return how many columns it has.

    The other arguments and the errors are those of ``entry``.
    """
    found = entry(catalog, obj, uid, idxs, update_metadata, missing_attributes())
    catalog.change().put(found)
    return len(found.columns)


def entry(
    catalog: "Catalog",
    obj: Any,
    uid: str,
    idxs: Any = None,
    update_metadata: Any = True,
    missing: MissingAttributes | None = None,
) -> Entry:
    """Return the entry of *obj* in *catalog* under *uid*, its path.

    - *idxs*: names of the indexes to update; None or empty for all
    - *update_metadata*: if false, metadata is computed for a new path only; a list, tuple or set names the metadata columns
      that are computed for a path with a row
    - *missing*: as in ``CachedAttributes``

    Raises the errors of indexers, except AttributeError, KeyError for an unknown index, CatalogError for an unknown column.
    """
    configuration: Configuration = catalog.configuration
    metadata = metadata_columns(configuration, update_metadata)
    has_all = set(metadata) == set(configuration.columns) and bool(update_metadata)
    names = with_rewriters(configuration, idxs) if idxs else configuration.translators
    source = CachedAttributes(obj, missing)
    jobs = texts.add_file_text(catalog, obj, source) if SOURCE_INDEX in names else frozenset[str]()
    extraction = Extraction(uid, source)
    extraction.add_indexes([configuration.translators[name] for name in names], configuration.columns)
    extraction.add_metadata(metadata)
    return Entry(
        clean_path(uid),
        zoid=oid_of(obj, catalog.jar),
        full=not idxs and has_all,
        columns=extraction.columns,
        idx=extraction.idx,
        vanished=frozenset(extraction.vanished),
        jobs=jobs,
        jobs_of_columns=jobs_for(catalog, names),
        late=None if has_all else lambda: metadata_of(uid, source, configuration.columns),
    )


def metadata_columns(configuration: Configuration, wanted: Any) -> tuple[str, ...]:
    """Return the metadata columns that the value *wanted* of ``update_metadata`` stands for; see ``entry``.

    Raises CatalogError for a name that is no column.
    """
    if not wanted or not isinstance(wanted, list | tuple | set | frozenset):
        return configuration.columns if wanted else ()
    if unknown := sorted(str(name) for name in wanted if name not in configuration.columns):
        raise CatalogError(f"update_metadata names no metadata column: {', '.join(unknown)}")
    return tuple(name for name in configuration.columns if name in wanted)


def with_rewriters(configuration: Configuration, idxs: Iterable[str]) -> list[str]:
    """Return the names *idxs*, and the names of the indexes that answer queries in their place."""
    names = dict.fromkeys(idxs)
    for name, index in configuration.rewriters.items():
        if not names.keys().isdisjoint(index.getIndexNames()):
            names[name] = None
    return list(names)


def update_metadata(catalog: "Catalog", obj: Any, uid: str) -> None:
    """Compute the metadata of *obj*, catalogued under *uid*, again."""
    extraction = Extraction(uid, CachedAttributes(obj))
    extraction.add_metadata(catalog.names)
    vanished = frozenset(extraction.vanished)
    catalog.change().put(Entry(clean_path(uid), oid_of(obj, catalog.jar), idx=extraction.idx, vanished=vanished))


def uncatalog_object(catalog: "Catalog", uid: Any) -> None:
    """Remove the row of *uid*, a path; an unknown path is no error."""
    if isinstance(uid, str):
        catalog.change().delete(clean_path(uid))


def move(catalog: "Catalog", rid: int, path: str) -> str:
    """Change the path of the row *rid* to *path*, in place of any other row there; return the former path.

    All indexed values stay as they are, even in path indexes.  Raises KeyError for an unknown row.
    """
    columns = catalog.layout().columns
    view = catalog.view()
    rows = view.select("path, zoid", equals(RID, rid), columns=columns).value()
    if not rows:
        raise KeyError(rid)
    [(former, zoid, *values)] = rows
    if former != path:
        idx = view.idx([rid]).value().get(rid, {})
        pending = catalog.change()
        pending.delete(former)
        named = dict(zip((column.name for column in columns), values, strict=True))
        pending.put(Entry(path, zoid, full=True, columns=named, idx=idx, required_rid=rid))
    return str(former)


def clear(catalog: "Catalog") -> None:
    """Remove all rows."""
    catalog.change().clear()


def drop(catalog: "Catalog") -> None:
    """Remove all rows; the commit also drops the relation."""
    clear(catalog)
    catalog.change().dropped = True


def clear_index(catalog: "Catalog", name: str) -> None:
    """Remove the values of all rows from the index *name*; raises KeyError for an unknown index."""
    columns = frozenset(c.name for c in catalog.translator(name).columns())
    if columns:
        catalog.change().clear_columns(columns)


def unindex(catalog: "Catalog", name: str, rid: int) -> None:
    """Remove the value of the row *rid* from the index *name*; an unknown row is no error."""
    translator = catalog.translator(name)
    columns = {c.name: None for c in translator.columns()}
    vanished = frozenset({name} - set(catalog.names) if translator.in_idx else ())
    for path, zoid in catalog.view().select("path, zoid", Condition("rid = %s", (rid,))).value():
        catalog.change().put(Entry(path, zoid=zoid, columns=columns, vanished=vanished))
