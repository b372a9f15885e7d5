"""``pgcatalog``: commands for the administrator of a site."""

from plone.pgcatalog.cli.advise import advise
from plone.pgcatalog.cli.bm25 import bm25
from plone.pgcatalog.cli.compare import compare
from plone.pgcatalog.cli.delegate import bench
from plone.pgcatalog.cli.delegate import demo
from plone.pgcatalog.cli.explain import explain
from plone.pgcatalog.cli.export import export
from plone.pgcatalog.cli.metrics import metrics
from plone.pgcatalog.cli.rebuild import rebuild
from plone.pgcatalog.cli.slow import slow
from plone.pgcatalog.cli.status import status
from plone.pgcatalog.cli.vacuum import vacuum
from plone.pgcatalog.cli.verify import verify

import click


@click.group()
def main() -> None:
    """Commands for a Plone site whose catalog is PostgreSQL."""


for _command in (status, verify, rebuild, slow, advise, explain, bm25, vacuum, export, metrics, compare, demo, bench):
    main.add_command(_command)
