"""The compared backends: a storage, and the catalog of a site on it."""

from pathlib import Path
from typing import Any
from typing import Protocol

import gc
import psycopg


#: The process cache of both storages, in MB (RelStorage's own default is 10).
CACHE_MB = 256


class Store(Protocol):
    """A ZODB storage."""

    name: str
    label: str

    def storage(self, dsn: str, folder: Path) -> Any:
        """Return an opened ZODB storage on the database *dsn*; its blobs, or its file, are in *folder*."""


class Backend(Store, Protocol):
    """A storage and a catalog."""

    def make_catalog(self) -> Any:
        """Return an empty catalog tool."""

    def register(self, db: Any) -> None:
        """Prepare the ZODB.DB *db* for the catalog, as Zope does at its start."""

    def install(self, site: Any) -> None:
        """Install the catalog in a new Plone site; does not commit."""

    def forget_results(self) -> None:
        """Empty caches of results that outlive a request, so that the next search runs completely."""


class ZCatalogBackend:
    """Plone's own catalog."""

    def make_catalog(self) -> Any:
        from Products.CMFPlone.CatalogTool import CatalogTool

        return CatalogTool()

    def register(self, db: Any) -> None:
        """Do nothing: ZCatalog needs no preparation."""

    def install(self, site: Any) -> None:
        """Do nothing: a new site has this catalog."""

    def forget_results(self) -> None:
        """Do nothing: ZCatalog caches results for a request only."""


class RelStorageZCatalog(ZCatalogBackend):
    """RelStorage with its psycopg2 driver, without history, as most Plone sites on PostgreSQL run."""

    name = "relstorage-zcatalog"
    label = "RelStorage + ZCatalog"

    def storage(self, dsn: str, folder: Path) -> Any:
        from relstorage.adapters.postgresql import PostgreSQLAdapter
        from relstorage.options import Options
        from relstorage.storage import RelStorage

        blobs = folder / "blobs"
        blobs.mkdir(parents=True, exist_ok=True)
        options = Options(
            keep_history=False,
            driver="psycopg2",
            blob_dir=str(blobs),
            shared_blob_dir=False,
            cache_local_mb=CACHE_MB,
        )
        return RelStorage(PostgreSQLAdapter(dsn, options=options), options=options, name=self.name)


class PGJsonbZCatalog(ZCatalogBackend):
    """zodb-pgjsonb with Plone's own catalog."""

    name = "pgjsonb-zcatalog"
    label = "zodb-pgjsonb + ZCatalog"

    def storage(self, dsn: str, folder: Path) -> Any:
        from zodb_pgjsonb.storage import PGJsonbStorage

        blobs = folder / "blobs"
        blobs.mkdir(parents=True, exist_ok=True)
        return PGJsonbStorage(dsn=dsn, cache_shared_mb=CACHE_MB, cache_warm_pct=0, blob_temp_dir=str(blobs))


class PGCatalog(PGJsonbZCatalog):
    """zodb-pgjsonb with the catalog of this package."""

    name = "pgcatalog"
    label = "plone.pgcatalog"

    def make_catalog(self) -> Any:
        from plone.pgcatalog.catalog import PlonePGCatalogTool

        return PlonePGCatalogTool()

    def register(self, db: Any) -> None:
        from plone.pgcatalog.indexing import processor

        processor.register(db)

    def install(self, site: Any) -> None:
        site.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")

    def forget_results(self) -> None:
        from plone.pgcatalog.results.cache import KINDS
        from plone.pgcatalog.results.cache import result_cache
        from plone.pgcatalog.results.cache import ROWS

        # Rows stay in the cache when a commit invalidates answers.
        for kind in KINDS:
            if kind != ROWS:
                result_cache().clear(kind)


class FileStorageZCatalog(ZCatalogBackend):
    """A storage in a file, without a database."""

    name = "filestorage-zcatalog"
    label = "FileStorage + ZCatalog"
    file = "Data.fs"

    def storage(self, dsn: str, folder: Path) -> Any:
        from ZODB.FileStorage import FileStorage

        return FileStorage(str(folder / self.file), blob_dir=str(folder / "blobs"))


BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (RelStorageZCatalog(), PGJsonbZCatalog(), PGCatalog())
}
#: The backend that is the reference, and the backend that is rated.
REFERENCE = RelStorageZCatalog.name
OURS = PGCatalog.name
#: The rated backend with the code of another checkout.
OTHER = "other"

#: The storages without a catalog, for the comparisons of storages.
STORES: dict[str, Store] = {
    "relstorage": RelStorageZCatalog(),
    "pgjsonb": PGJsonbZCatalog(),
    "filestorage": FileStorageZCatalog(),
}
#: A table of PostgreSQL without a storage.
PLAIN = "plain-sql"
LABELS = {name: backend.label for name, backend in BACKENDS.items()} | {
    "relstorage": "RelStorage",
    "pgjsonb": "PGJsonbStorage",
    "filestorage": "FileStorage",
    "bare-sql": "bare SQL",
    PLAIN: "plain PostgreSQL",
    "pickle": "pickle",
    "codec": "zodb-json-codec",
    OTHER: "plone.pgcatalog, other version",
}


def open_db(backend: Backend, dsn: str, folder: Path, cache_size: int) -> Any:
    """Return a ZODB.DB of *backend* with *cache_size* objects per connection."""
    from ZODB.DB import DB

    # The name that Zope gives it: stored references to objects contain it.
    db = DB(backend.storage(dsn, folder), cache_size=cache_size, database_name="main")
    backend.register(db)
    return db


def close_db(db: Any) -> None:
    """Close *db* and discard its caches: the next opening starts empty."""
    db.close()
    gc.collect()


def vacuum(dsn: str) -> None:
    """Collect the planner's statistics, as autovacuum would after a while, and write all changes to the disk."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def database_mb(dsn: str) -> float:
    """Return the size of the database in MB."""
    with psycopg.connect(dsn) as connection:
        [(size,)] = connection.execute("SELECT pg_database_size(current_database())")
        return float(size) / 2**20
