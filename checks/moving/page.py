"""The page ``docs/how-to/from-your-site.md``: its blocks, adapted to paths and addresses of this machine."""

from pathlib import Path

import re


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-your-site.md"
#: The page with the transcripts of its commands.
TRANSCRIPTS = PAGE.parents[1] / "reference" / "moves.md"
SNIPPET = re.compile(r"^( *)% snippet: ([\w-]+)\n *```\w+\n(.*?)^ *```$", re.M | re.S)


def snippets(path: Path = PAGE) -> dict[str, str]:
    """Return the blocks of the page at *path* by name, without their indentation."""
    return {
        name: "".join(f"{line.removeprefix(indent)}\n" for line in body.splitlines())
        for indent, name, body in SNIPPET.findall(path.read_text("utf-8"))
    }


def with_block(conf: str, block: str) -> str:
    """Return a zope.conf in which *block*, a database of the page, replaces its own ``<zodb_db main>``."""
    imports, separator, database = block.rpartition("<zodb_db main>")
    replaced = re.sub(r"<zodb_db main>.*?</zodb_db>\n", lambda _: separator + database, conf, count=1, flags=re.S)
    return imports + replaced


def settings() -> dict[str, str]:
    """Return the settings of PostgreSQL that the page recommends."""
    lines = snippets()["settings"].splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
