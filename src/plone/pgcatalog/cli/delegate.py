"""``pgcatalog bench``: a program of the checkout under the name of the commands."""

from pathlib import Path

import click
import subprocess
import sys


#: The benchmark is part of a checkout, not of the installed package.
BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "run_benchmarks.py"
FORWARD = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@click.command(context_settings=FORWARD, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """The benchmark against ZCatalog; takes the commands of benchmarks/run_benchmarks.py."""
    if not BENCHMARK.is_file():
        raise click.UsageError("the benchmark is part of a checkout of plone.pgcatalog, which this is not")
    raise SystemExit(subprocess.run([sys.executable, str(BENCHMARK), *arguments], check=False).returncode)
