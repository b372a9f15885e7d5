"""Fixtures for every test: a PostgreSQL server, and Plone sites on it."""

from collections.abc import Generator
from collections.abc import Iterator
from hypothesis import settings
from pathlib import Path
from plone.pgcatalog.observe import searches
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.host import public_tmp
from plone.pgcatalog.testing.host import ServerUser
from tests.integration.bouncer import find_pgbouncer
from tests.integration.fixtures import app  # noqa: F401
from tests.integration.fixtures import both  # noqa: F401
from tests.integration.fixtures import catalog  # noqa: F401
from tests.integration.fixtures import compared  # noqa: F401
from tests.integration.fixtures import db  # noqa: F401
from tests.integration.fixtures import dsn  # noqa: F401
from tests.integration.fixtures import filled  # noqa: F401
from tests.integration.fixtures import portal  # noqa: F401
from tests.integration.fixtures import shared_both  # noqa: F401
from tests.integration.fixtures import shared_filled  # noqa: F401
from tests.integration.fixtures import shared_portal  # noqa: F401
from tests.integration.fixtures import shared_site  # noqa: F401
from tests.integration.fixtures import site_template  # noqa: F401
from tests.integration.fixtures import site_with  # noqa: F401
from tests.integration.fixtures import stock_dsn  # noqa: F401
from tests.integration.fixtures import stock_template  # noqa: F401
from tests.integration.fixtures import two_sites_template  # noqa: F401
from tests.integration.fixtures import zope  # noqa: F401
from tests.integration.pooled import PooledPostgres
from tests.integration.site import collecting_clones
from tests.integration.site import drop_clones
from typing import Any

import gc
import itertools
import os
import psycopg
import pytest
import shutil
import tempfile
import time


# The duration of an example depends on the machine, and is no law.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SHARED_MEMORY = Path("/dev/shm")
NEEDED_BYTES = 1 << 30

_numbers = itertools.count(1)

#: Prefixes of variables that users set for other work: repositories, servers, options of pytest, colours of its output.
OF_USERS = ("GIT_", "PG", "ZODB_PGJSONB_", "PYTEST_ADDOPTS", "FORCE_COLOR")
#: Variables with these prefixes that are for tests.
OF_TESTS = {"PGCATALOG_PG_BIN", "PGCATALOG_SLOW_QUERY_MS", "PGCATALOG_TEST_DESCENDANTS"}
for _name in [name for name in os.environ if name.startswith(OF_USERS) and name not in OF_TESTS]:
    del os.environ[_name]
# The user's settings of git may sign commits, or run hooks.
os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

# Plone's DateTime reads no time of a zone whose abbreviation is a number: there is no site in Kiritimati.
if not time.tzname[0].isalpha():
    os.environ["TZ"] = "UTC"
    time.tzset()

# Page templates are compiled once for all processes and runs; not if the folder is another user's.
_templates = Path(__file__).parents[1] / ".pytest_cache" / "templates"
_templates.mkdir(parents=True, exist_ok=True)
if os.access(_templates, os.W_OK):
    os.environ.setdefault("CHAMELEON_CACHE", str(_templates))

# Millions of objects of Plone stay in a process, and each collection of garbage visits them in vain.
gc.set_threshold(20_000, 20, 100)

# The recorder of slow queries connects at any time, but a database can only be copied without connections.
os.environ.setdefault("PGCATALOG_SLOW_QUERY_MS", "0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Encode lone surrogates in a report's captured output, so that pytest-xdist's processes can exchange it."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    """Drop the databases cloned by a fixture at its end."""
    with collecting_clones() as clones:
        # Before the set-up: the finalizer must be registered first.
        fixturedef.addfinalizer(lambda: drop_clones(clones))
        return (yield)


def memory_folder() -> Path | None:
    """Return a folder in memory with room for the cluster; None if there is none."""
    if not os.path.ismount(SHARED_MEMORY) or not os.access(SHARED_MEMORY, os.W_OK):
        return None
    return SHARED_MEMORY if shutil.disk_usage(SHARED_MEMORY).free > NEEDED_BYTES else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pgbouncer", help="The PgBouncer to test with, instead of the one that is installed.")
    parser.addoption(
        "--through-pooler", action="store_true", help="Let tests reach their databases through that PgBouncer."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests about which a session through a pooler says nothing."""
    if not config.getoption("--through-pooler"):
        return
    for item in items:
        for mark in item.iter_markers("direct"):
            item.add_marker(pytest.mark.skip(*mark.args))
        used = getattr(item, "fixturenames", ())
        if "pgbouncer" in used:
            item.add_marker(pytest.mark.skip("it starts a pooler of its own"))
        elif "postgres" not in used:
            item.add_marker(pytest.mark.skip("it starts a server of its own, or needs none"))


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL server for the whole session."""
    if request.config.getoption("--through-pooler"):
        with PooledPostgres(request.config.getoption("--pgbouncer"), memory_folder()) as server:
            yield from until_searches_are_counted(server)
        return
    with EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=memory_folder()) as server:
        yield from until_searches_are_counted(server)


def until_searches_are_counted(server: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    """Yield *server*; write the counts of searches over HTTP before it stops."""
    yield server
    searches.flush(30)


@pytest.fixture(scope="session")
def pgbouncer(request: pytest.FixtureRequest) -> str:
    """Path of the program; the test is skipped without one."""
    found = request.config.getoption("--pgbouncer") or find_pgbouncer()
    if found is None:
        pytest.skip("PgBouncer is not installed")
    return str(found)


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The DSN of a fresh, empty database; it is dropped after the test."""
    name = f"test_{next(_numbers)}"
    yield postgres.createdb(name)
    postgres.dropdb(name)


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection to a fresh, empty database."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A temporary folder that all users may enter (root's tmp_path is closed)."""
    with tempfile.TemporaryDirectory(prefix="pgcatalog-test-", dir=public_tmp(ServerUser.choose(None))) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
