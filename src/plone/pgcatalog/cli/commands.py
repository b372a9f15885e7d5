"""``pgcatalog``: commands for the administrator of a site.

A command's module is imported when the command runs or shows its help, so commands that need no Zope do not load it.
"""

from importlib import import_module
from pathlib import Path

import click
import subprocess
import sys


MODULES = "plone.pgcatalog.cli"
#: The sections of the help: name of a command -> (its module, its description).
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Set up and maintain a site": {
        "check": ("reports", "Check a site for faults, and show the remedies."),
        "copy": ("data", "Copy the objects of a site to another storage."),
        "install": ("set_up", "Install the catalog in a site, in batches."),
        "uninstall": ("set_up", "Reinstall Plone's own catalog in a site, in batches."),
        "compare": ("set_up", "Rehearse the installation on a copy of a site."),
        "status": ("reports", "Show sizes, indexes, connections and rebuilds."),
        "verify": ("work", "Compare the catalog with the content."),
        "rebuild": ("work", "Rebuild the catalog beside the live one."),
        "vacuum": ("data", "Remove leftovers, and run VACUUM ANALYZE."),
        "metrics": ("reports", "Print or serve metrics for Prometheus."),
        "files": ("jobs", "Show the files that wait for text extraction, or failed."),
        "meaning": ("jobs", "Show the vectors of pages, and the pages that wait or failed."),
        "work": ("jobs", "Run queued jobs: text of files, vectors of pages."),
        "blocks": ("blocks", "Show blocks of pages that name code, and store them as data."),
        "tuning": ("tuning", "Export, import and check the tuning of the search."),
        "export": ("data", "Write all rows as JSON lines or CSV."),
    },
    "Tune searches": {
        "searches": ("searches", "Show frequent searches, or replay them with other tuning."),
    },
    "Make searches faster": {
        "slow": ("reports", "Show the slow queries."),
        "explain": ("work", "Show the SQL of a query and how PostgreSQL runs it."),
        "advise": ("work", "Suggest SQL indexes for the slow queries."),
    },
    "Measure": {
        "bench": ("commands", "Run the benchmark of a checkout."),
    },
}
#: The benchmark is part of a checkout, not of the installed package.
BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "run_benchmarks.py"
FORWARD = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(click.Group):
    """A group that imports the module of a command when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"{MODULES}.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


def show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """Print the versions of this package and of the storage, and exit."""
    if not wanted or ctx.resilient_parsing:
        return
    from plone.pgcatalog.distribution import own_distribution
    from plone.pgcatalog.distribution import version_of

    distribution = own_distribution()
    name = (
        "plone.pgcatalog (not installed)"
        if distribution is None
        else f"{distribution.metadata['Name']} {distribution.version}"
    )
    click.echo(f"{name}, zodb-pgjsonb {version_of('zodb-pgjsonb') or 'not installed'}")
    ctx.exit()


@click.group(cls=Commands)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show versions and exit."
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Commands for a Plone site whose catalog is PostgreSQL.

    pgcatalog COMMAND --help shows the options of a command.
    """
    from plone.pgcatalog.distribution import mixture

    # ``check`` reports a mixture among its findings.
    sentence = None if ctx.invoked_subcommand == "check" else mixture()
    if sentence is not None:
        raise click.ClickException(sentence)


@click.command(context_settings=FORWARD, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmark against ZCatalog; arguments are those of benchmarks/run_benchmarks.py."""
    if not BENCHMARK.is_file():
        raise click.UsageError(
            "the benchmark needs a checkout of plone.pgcatalog; the installed package does not contain it"
        )
    raise SystemExit(subprocess.run([sys.executable, str(BENCHMARK), *arguments], check=False).returncode)
