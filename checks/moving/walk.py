"""Follows the page, block by block, in a separate folder, and records commands and output."""

from checks.moving import page
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.moves import sources
from tests.integration.site import SITE_ZCML
from time import monotonic

import os
import psycopg
import psycopg.conninfo
import subprocess
import sys


WIDTH = "80"


class StepFailed(RuntimeError):
    """A command of the page has ended with an exit status other than 0."""


@dataclass
class Walk:
    """One site on its way from a storage of *kind*, and back; *folder* is its instance, in the *layout* of a tool.

    ``transcript`` is the text of an administrator's terminal.
    """

    folder: Path
    postgres: EmbeddedPostgres
    kind: str
    site: str = "Plone"
    layout: str = "cookiecutter-zope-instance"
    transcript: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        sources.make_instance(self.folder, self.layout)
        (self.folder / "etc" / "site.zcml").write_text(SITE_ZCML)
        self.blocks = page.snippets()
        server = psycopg.conninfo.conninfo_to_dict(self.postgres.dsn("postgres"))
        self.host = str(server["host"])
        self.superuser = self.postgres.dsn("postgres")
        if self.kind == "relstorage":
            block = self.blocks["back-relstorage"].replace("dbname=relstorage", "dbname=old")
            self.put("zope", block.replace("var/back/", "var/"))
        self.configure("copy-conf", "new", self.blocks["new-conf"])

    def conf(self, name: str = "zope") -> Path:
        """Return the path of a configuration: ``zope``, the old one, ``new`` or ``back``."""
        return self.folder / "etc" / f"{name}.conf"

    def put(self, name: str, block: str) -> None:
        """Insert *block*, a database of the page, into the configuration *name*."""
        path = self.conf(name)
        path.write_text(page.with_block(path.read_text("utf-8"), self.placed(block)), "utf-8")

    def configure(self, commands: str, name: str, block: str) -> None:
        """Create the configuration *name*: copied by a block of *commands*, then with another database."""
        subprocess.run(["sh", "-e", "-c", self.text(commands)], cwd=self.folder, check=True)
        self.put(name, block)

    def configure_back(self) -> None:
        """Create the configuration of the way back."""
        name = "back-relstorage" if self.kind == "relstorage" else "back-filestorage"
        self.configure("back-folders", "back", self.blocks[name].replace("dbname=relstorage", "dbname=back"))

    def placed(self, text: str) -> str:
        """Return *text* of the page with paths and addresses of this machine."""
        text = text.replace("/srv/plone", str(self.folder)).replace("host=localhost", f"host={self.host}")
        return text.replace("--site Plone", f"--site {self.site}")

    def text(self, name: str) -> str:
        """Return the block *name* of the page, placed."""
        return self.placed(self.blocks[name])

    def dsn(self, database: str) -> str:
        """Return the connection string of *database* from the page, placed."""
        return f"host={self.host} dbname={database} user=plone password=secret"

    @contextmanager
    def old_storage(self) -> Iterator[None]:
        """Serve the old storage inside the block, if it needs ZEO; then its client is the old configuration."""
        if self.kind != "zeo":
            yield
            return
        with sources.zeo_server(self.folder, self.layout) as section:
            self.put("zope", f"<zodb_db main>\n  mount-point /\n{section}</zodb_db>\n")
            yield

    def sql(self, name: str) -> None:
        """Run the statements of a block as the superuser of the server."""
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            for statement in filter(str.strip, self.blocks[name].split(";")):
                connection.execute(statement.encode())
        self.transcript += [f"plone=# {line}" for line in self.blocks[name].splitlines()]

    def create_database(self, name: str) -> None:
        """Create a database of the page's role."""
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {} OWNER plone").format(psycopg.sql.Identifier(name)))

    def shell(self, name: str) -> None:
        """Run the commands of a block, one after the other.  Raises StepFailed at the first failure."""
        for typed, line in zip(self.blocks[name].splitlines(), self.text(name).splitlines(), strict=True):
            started = monotonic()
            binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            environment = {
                "PATH": binaries,
                "COLUMNS": WIDTH,
                "TERM": "dumb",
                "NO_COLOR": "1",
                "PYTHONWARNINGS": "ignore",
                # A checkout has plone.observability, and `pgcatalog check` warns of it as long as it is public.
                "PLONE_OBSERVABILITY_METRICS_ALLOWLIST": "127.0.0.1",
            }
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=self.folder,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                check=False,
            )
            seconds = monotonic() - started
            printed = done.stdout.rstrip().replace(self.host, "localhost").replace(str(self.folder), "/srv/plone")
            self.transcript += [
                f"$ {typed}",
                *map(str.rstrip, printed.splitlines()),
                f"# exit status {done.returncode}, {seconds:.0f} s",
                "",
            ]
            if done.returncode:
                raise StepFailed(f"{line}\n{done.stdout}\n{done.stderr}")

    # -- the parts of the page

    def prepare(self) -> None:
        """Section 2: a role and databases."""
        self.sql("database")
        self.shell("check-database")

    def rehearse(self) -> None:
        """Section 4."""
        self.shell("rehearse")
        self.sql("after-rehearsal")

    def switch(self) -> None:
        """Section 5."""
        for name in ("copy", "install", "verify"):
            self.shell(name)

    def go_back(self) -> None:
        """The way back."""
        self.configure_back()
        self.shell("back")
