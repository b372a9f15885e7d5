"""``pgcatalog blocks``: blocks of pages that name code.  It loads no Plone."""

from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import find_dsn
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database.findings import hostile_blocks

import click


class Oid(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """The id of an object, such as 0x1f, or ``all``; converted to a number, ``all`` to None."""

    name = "oid"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value == "all":
            return None
        try:
            return int(str(value), 16)
        except ValueError:
            self.fail(f"{value!r} is not an id such as 0x1f", param, ctx)


@click.command()
@click.argument("zope_conf", type=CONF)
@click.option(
    "--repair", "wanted", type=Oid(), multiple=True, help="Store the blocks of this object as data (0x1f, or all)."
)
@prints_result
def blocks(zope_conf: str, wanted: tuple[int | None, ...]) -> Result:
    """Show the objects whose blocks name a class or a function, which is called when the object is loaded.

    Any editor of a page could store such blocks before plone.pgcatalog was installed.  With --repair they are stored as
    data, in one transaction, without loading the objects.  Look at them first: some may be values of add-ons.

    Exit code 0: there are no such objects, or all were repaired; 1: there are some; 2: the command failed.
    """
    # Imported late: they import ZODB, which --help does not need.
    from plone.pgcatalog.cli.data import opened
    from plone.pgcatalog.indexing import processor
    from plone.pgcatalog.storage.blocks import repair_blocks
    from ZODB.DB import DB

    with connected(find_dsn(zope_conf, None)) as connection:
        found = hostile_blocks(connection)
        oids = [each.oid for each in found if None in wanted or each.oid in wanted]
        if unknown := set(wanted) - {None, *oids}:
            raise click.UsageError(
                f"no such blocks: {', '.join(f'0x{oid:x}' for oid in sorted(filter(None, unknown)))}"
            )
        if oids:
            with opened(zope_conf) as storage:
                # Registered so that a commit out of order is noticed.
                database = DB(storage)
                processor.register(database)
                repair_blocks(storage, connection, oids)
            found = hostile_blocks(connection)
    data = {"objects": [each._asdict() for each in found], "repaired": oids}
    repaired = [f"{len(oids)} objects were repaired"] if oids else []
    end = f"{len(found)} objects have blocks that name code" if found else "no blocks name code"
    return Result(data, [*map(str, found), *repaired, end], 1 if found else 0)
