"""Upgrade steps that wait in sites, told by the files of the package and by what GenericSetup has noted; without Zope."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from plone.pgcatalog.database.sites import path_above
from plone.pgcatalog.database.sites import TOOL_CLASS
from plone.pgcatalog.protocols import Connection
from typing import Any
from xml.etree import ElementTree


PROFILE = "plone.pgcatalog:default"
GENERIC_SETUP = "{http://namespaces.zope.org/genericsetup}"
TOOLS = "SELECT zoid FROM object_state WHERE class_mod = %s AND class_name = %s ORDER BY zoid"
#: The version of our profile that the setup tools of sites have noted; they keep the versions in an object of their own.
VERSIONS = (
    "SELECT tool.zoid, versions.state -> 'data' -> %s -> '@t' ->> 0 AS version"
    " FROM object_state tool JOIN object_state versions ON versions.zoid ="
    " ('x' || (tool.state -> '_profile_upgrade_versions' -> '@ref' ->> 0))::bit(64)::bigint"
    " WHERE tool.class_mod = 'Products.GenericSetup.tool' AND tool.class_name = 'SetupTool' ORDER BY tool.zoid"
)


@cache
def steps() -> list[tuple[int, str]]:
    """Return the version that an upgrade step leads to, and its title, for each, the first one first."""
    root = ElementTree.fromstring((files("plone.pgcatalog") / "upgrades.zcml").read_text("utf-8"))
    return [
        (int(group.get("destination", "")), step.get("title", ""))
        for group in root
        for step in (group if group.tag == f"{GENERIC_SETUP}upgradeSteps" else [group])
    ]


def waiting_since(version: Any) -> list[str]:
    """Return the titles of the steps that wait in a site whose profile has *version*, as GenericSetup notes it."""
    number = version[0] if isinstance(version, tuple) else version
    return [title for to, title in steps() if to > int(number)] if str(number).isdecimal() else []


def waiting(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield ``site``, a path, and ``steps``, the titles of the steps that wait there, for each site with our catalog.

    Reads only; the rows of *connection* are dicts.
    """
    sites = {path_above(connection, row["zoid"]) for row in connection.execute(TOOLS, TOOL_CLASS).fetchall()}
    for row in connection.execute(VERSIONS, [PROFILE]).fetchall():
        titles = waiting_since(row["version"])
        site = path_above(connection, row["zoid"]) if titles else None
        if site is not None and site in sites:
            yield {"site": site, "steps": titles}
