"""The manifest of the documentation names existing probes, commands, ports and volumes."""

from configparser import ConfigParser
from demo.server import free_port
from importlib.metadata import distribution
from io import StringIO
from plone.observability.health.server import HealthServer
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.files import extractor
from plone.pgcatalog.metrics import observability
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import click
import requests
import yaml


OBJECTS: dict[tuple[str, str], Any] = {
    (item["kind"], item["metadata"]["name"]): item
    for item in yaml.safe_load_all(text(ROOT / "docs" / "kubernetes" / "plone.yaml"))
}
PODS: dict[str, Any] = {
    name: item["spec"]["template"]["spec"] for (kind, name), item in OBJECTS.items() if kind == "Deployment"
}
CONTAINERS: dict[str, Any] = {name: pod["containers"][0] for name, pod in PODS.items()}
ZOPE = CONTAINERS["zope"]


def test_probes_of_zope_are_answered() -> None:
    """By the health server, which answers 404 to unknown paths."""
    server = HealthServer(host="127.0.0.1")
    assert {"name": "health", "containerPort": server.port} in ZOPE["ports"]
    server.port = free_port(server.host, 0)
    server.start()
    try:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            url = f"http://{server.host}:{server.port}{ZOPE[probe]['httpGet']['path']}"
            assert requests.get(url, timeout=10).status_code in (200, 503)
    finally:
        server.stop()
    assert ZOPE["readinessProbe"]["timeoutSeconds"] > observability.TIMEOUT


def test_workers_are_a_command_that_exists_and_may_finish_a_file() -> None:
    _, name, _, *options = CONTAINERS["workers"]["command"]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known
    assert PODS["workers"]["terminationGracePeriodSeconds"] > extractor.TIMEOUT + extractor.STOP_SECONDS


def test_pipeline_consists_of_installed_filters() -> None:
    ini = ConfigParser()
    ini.read_string(OBJECTS["ConfigMap", "plone"]["data"]["zope.ini"])
    filters = [part for part in ini["pipeline:main"]["pipeline"].split() if part.startswith("egg:")]
    assert len(filters) == 3
    for part in filters:
        name, _, entry_point = part.removeprefix("egg:").partition("#")
        points = distribution(name).entry_points
        assert entry_point in {point.name for point in points if point.group.startswith("paste.filter")}


def test_zope_conf_of_the_manifest_is_valid() -> None:
    from zodb_pgjsonb.config import PGJsonbStorageFactory
    from Zope2.Startup.options import ZopeWSGIOptions

    import ZConfig

    options = ZopeWSGIOptions()
    options.load_schema()
    # Folders of the container.
    written = OBJECTS["ConfigMap", "plone"]["data"]["zope.conf"]
    written = written.replace(" /app", f" {ROOT}").replace(" /data", f" {ROOT}")
    configuration, _ = ZConfig.loadConfigFile(options.schema, StringIO(written))
    [database] = configuration.databases
    assert isinstance(database.config.storage, PGJsonbStorageFactory)
    assert {"PGPASSWORD", "PGCATALOG_DIRECT_DSN"} <= {entry["name"] for entry in ZOPE["env"]}
    assert "password" not in database.config.storage.config.dsn
