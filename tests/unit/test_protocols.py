"""Protocols state what is really there."""

from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.core.catalog import Catalog
from typing import Any

import inspect
import plone.pgcatalog.protocols as protocols
import psycopg
import pytest


TOOL = PlonePGCatalogTool()
#: A protocol, and what stands behind it; classes of psycopg keep an attribute or two in their instances.
REAL = [
    (protocols.CatalogTool, TOOL),
    (protocols.Catalog, Catalog(TOOL)),
    (protocols.Connection, psycopg.Connection),
    (protocols.Cursor, psycopg.Cursor),
]


@pytest.mark.parametrize(("protocol", "real"), REAL)
def test_members_exist(protocol: Any, real: Any) -> None:
    missing = object()
    names = [name for name in protocol.__protocol_attrs__ if inspect.getattr_static(real, name, missing) is missing]
    assert names == []
