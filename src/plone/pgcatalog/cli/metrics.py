"""``pgcatalog metrics``: the figures of a database for Prometheus."""

from plone.pgcatalog.cli.target import needs_database
from typing import Any

import click


@click.command()
@needs_database
@click.option(
    "--serve",
    "port",
    type=click.IntRange(1, 65535),
    help="Serve them over HTTP on this port, until the process is ended.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option("--check", is_flag=True, help="Also count damaged rows (reads all rows).")
def metrics(dsn: str, port: int | None, host: str, check: bool) -> None:
    """Print, or serve, the figures of the database in Prometheus' text format.

    Exit code 0: done; 1: the database does not answer, or has no catalog; 2: it cannot be served.
    """
    try:
        from plone.pgcatalog.metrics import prometheus
    except ImportError as error:
        raise click.UsageError("prometheus-client is not installed; it is in the extra 'metrics'") from error
    if port is None:
        text = prometheus.text(dsn, check)
        click.echo(text, nl=False)
        raise SystemExit(0 if "pgcatalog_up 1.0" in text else 1)
    try:
        thread: Any = prometheus.serve(dsn, host, port, check)[1]
    except OSError as error:
        raise click.UsageError(f"{host}:{port}: {error.strerror}") from error
    click.echo(f"http://{host}:{port}/metrics", err=True)
    thread.join()
