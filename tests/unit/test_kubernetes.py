"""The manifest of the documentation names existing probes, commands, ports and volumes."""

from configparser import ConfigParser
from demo.server import free_port
from importlib.metadata import distribution
from pathlib import Path
from plone.observability.health.server import HealthServer
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.files import extractor
from plone.pgcatalog.metrics import observability
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import click
import re
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


def test_probes_of_zope_are_answered_and_workers_may_finish_a_file() -> None:
    """The health server answers 404 to unknown paths."""
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
    assert PODS["workers"]["terminationGracePeriodSeconds"] > extractor.TIMEOUT + extractor.STOP_SECONDS


def test_command_of_workers_and_filters_of_the_pipeline_exist() -> None:
    _, name, _, *options = CONTAINERS["workers"]["command"]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert {each for each in options if each[:2] == "--"} <= {flag for p in command.params for flag in p.opts}
    ini = ConfigParser()
    ini.read_string(OBJECTS["ConfigMap", "plone"]["data"]["zope.ini"])
    filters = [part for part in ini["pipeline:main"]["pipeline"].split() if part.startswith("egg:")]
    assert len(filters) == 3
    for part in filters:
        egg, _, name = part.removeprefix("egg:").partition("#")
        assert any(each.name == name and "paste.filter" in each.group for each in distribution(egg).entry_points)


def test_zope_conf_of_manifest_and_container_is_valid(tmp_path: Path) -> None:
    conf = tmp_path / "zope.conf"
    for written in (OBJECTS["ConfigMap", "plone"]["data"]["zope.conf"], text(ROOT / "scripts/container/zope.conf")):
        # Folders of the container.
        conf.write_text(re.sub(r"(?<=\s)/(?:app|data)", str(tmp_path), written.replace("@DSN@", "host=db")))
        [database] = configured_databases(str(conf))
        assert "password" not in (database.dsn or "password")
        assert database.pool_size < (database.pool_max or 0)
    assert {"PGPASSWORD", "PGCATALOG_DIRECT_DSN"} <= {entry["name"] for entry in ZOPE["env"]}
