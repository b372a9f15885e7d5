"""The manifest of the documentation names existing probes, commands, ports and volumes."""

from configparser import ConfigParser
from demo.server import free_port
from importlib.metadata import distribution
from io import StringIO
from plone.observability.health.server import HealthServer
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.files import extractor
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import click
import pytest
import requests
import yaml


OBJECTS: dict[tuple[str, str], Any] = {
    (item["kind"], item["metadata"]["name"]): item
    for item in yaml.safe_load_all(text(ROOT / "docs" / "kubernetes" / "plone.yaml"))
}
DEPLOYMENTS = [name for kind, name in OBJECTS if kind == "Deployment"]
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def pod(name: str) -> Any:
    return OBJECTS["Deployment", name]["spec"]["template"]["spec"]


def container(name: str) -> Any:
    [only] = pod(name)["containers"]
    return only


def seconds_to_end(name: str) -> int:
    return int(pod(name)["terminationGracePeriodSeconds"])


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_deployment_selects_its_pods_and_mounts_existing_volumes(name: str) -> None:
    spec = OBJECTS["Deployment", name]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert {mount["name"] for mount in container(name)["volumeMounts"]} == {v["name"] for v in pod(name)["volumes"]}
    for volume in pod(name)["volumes"]:
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in OBJECTS


@pytest.mark.parametrize("name", [name for kind, name in OBJECTS if kind == "Service"])
def test_a_service_leads_to_ports_of_a_deployment(name: str) -> None:
    spec = OBJECTS["Service", name]["spec"]
    assert spec["selector"] == OBJECTS["Deployment", name]["spec"]["selector"]["matchLabels"]
    ports = {port["name"] for port in container(name)["ports"]}
    assert {port["targetPort"] for port in spec["ports"]} <= ports


def test_the_probes_of_zope_are_answered() -> None:
    """By the health server, which answers 404 to unknown paths."""
    zope = container("zope")
    server = HealthServer(host="127.0.0.1")
    assert {"name": "health", "containerPort": server.port} in zope["ports"]
    server.port = free_port(server.host, 0)
    server.start()
    try:
        base = f"http://{server.host}:{server.port}"
        paths = {zope[probe]["httpGet"]["path"] for probe in PROBES}
        answers = {path: requests.get(f"{base}{path}", timeout=10).status_code for path in paths}
        assert len(answers) == len(PROBES)
        assert set(answers.values()) <= {200, 503}
        assert requests.get(f"{base}/unknown", timeout=10).status_code == 404
    finally:
        server.stop()


def test_the_readiness_probe_outwaits_the_catalogs_check() -> None:
    from plone.pgcatalog.metrics import observability

    assert container("zope")["readinessProbe"]["timeoutSeconds"] > observability.TIMEOUT


def test_workers_are_a_command_that_exists_and_may_finish_a_file() -> None:
    _, name, _, *options = container("workers")["command"]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known
    assert seconds_to_end("workers") > extractor.TIMEOUT + extractor.STOP_SECONDS


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_pod_has_time_to_end(name: str) -> None:
    stop = container(name).get("lifecycle", {}).get("preStop")
    pause = int(stop["exec"]["command"][1]) if stop else 0
    assert pause < seconds_to_end(name) / 2


def test_pipeline_consists_of_installed_filters() -> None:
    ini = ConfigParser()
    ini.read_string(OBJECTS["ConfigMap", "plone"]["data"]["zope.ini"])
    filters = [part for part in ini["pipeline:main"]["pipeline"].split() if part.startswith("egg:")]
    assert len(filters) == 3
    for part in filters:
        name, _, entry_point = part.removeprefix("egg:").partition("#")
        points = distribution(name).entry_points
        assert entry_point in {point.name for point in points if point.group.startswith("paste.filter")}


def test_image_has_the_programs_of_the_manifest() -> None:
    built = text(ROOT / "Containerfile")
    assert "plone.observability" in built
    assert str(container("zope")["command"][0]).startswith("/app/bin/")


def test_zope_conf_of_the_manifest_is_valid() -> None:
    from zodb_pgjsonb.config import PGJsonbStorageFactory
    from Zope2.Startup.options import ZopeWSGIOptions

    import ZConfig

    options = ZopeWSGIOptions()
    options.load_schema()
    # Folders of the container.
    written = (
        OBJECTS["ConfigMap", "plone"]["data"]["zope.conf"].replace(" /app", f" {ROOT}").replace(" /data", f" {ROOT}")
    )
    configuration, _ = ZConfig.loadConfigFile(options.schema, StringIO(written))
    [database] = configuration.databases
    assert isinstance(database.config.storage, PGJsonbStorageFactory)
    assert {"PGPASSWORD", "PGCATALOG_DIRECT_DSN"} <= {entry["name"] for entry in container("zope")["env"]}
    assert "password" not in database.config.storage.config.dsn
