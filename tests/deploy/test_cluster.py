"""The files for a cluster: each command, port, probe, setting and secret that they name exists."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Final

import click
import pytest
import trustme
from compose_spec import PyCompose
from ruamel.yaml import YAML
from starlette.routing import Route

from pointsman.cli import serve
from pointsman.server import probes
from pointsman.server.application import api
from pointsman.settings import load_settings
from pointsman.values import Seconds
from tests.deploy.test_deploy import DEPLOY, MAIN, NGINX

COMMANDS: Final = {"serve": serve.serve, "worker": serve.worker}
Document = Any


def load(name: str) -> list[Document]:
    yaml: Any = YAML(typ="safe")
    return [*yaml.load_all(DEPLOY / name)]


@pytest.fixture(scope="module")
def kubernetes() -> list[Document]:
    return load("kubernetes.yaml")


@pytest.fixture(scope="module")
def services() -> dict[str, Document]:
    (compose,) = load("compose.cluster.yaml")
    return compose["services"]


def options(arguments: list[str]) -> dict[str, Any]:
    """Return the options of a command, as `pointsman` reads them. Fails for an unknown one."""
    name, *rest = arguments
    return COMMANDS[name].make_context(name, rest).params


def of_kind(documents: list[Document], *kinds: str) -> Iterator[Document]:
    return (one for one in documents if one["kind"] in kinds)


def pods(documents: list[Document]) -> dict[str, Document]:
    workloads = of_kind(documents, "Deployment", "StatefulSet")
    return {one["metadata"]["name"]: one["spec"]["template"] for one in workloads}


def containers(documents: list[Document]) -> dict[str, Document]:
    return {name: pod["spec"]["containers"][0] for name, pod in pods(documents).items()}


def test_both_clusters_have_servers_and_workers_with_the_options_of_the_commands(
    kubernetes: list[Document], services: dict[str, Document]
) -> None:
    for given in (
        {name: one.get("args") for name, one in containers(kubernetes).items()},
        {name: one.get("command") for name, one in services.items()},
    ):
        assert {"server", "worker", "temporal", "postgres"} <= given.keys()
        server, worker = options(given["server"]), options(given["worker"])
        assert (server["host"], server["port"]) == ("0.0.0.0", 8000)
        assert (worker["executions"], worker["probes"].port) == (200, 8001)
    assert options(services["heavy"]["command"])["queues"] == ("heavy",)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        options(["worker", "--parallel", "2"])


def test_ports_and_probes_are_those_of_the_processes(kubernetes: list[Document]) -> None:
    found = containers(kubernetes)
    ports = {name: {port["name"]: port["containerPort"] for port in one["ports"]} for name, one in found.items()}
    assert ports["server"] == {"http": options(found["server"]["args"])["port"]}
    assert ports["worker"] == {"probes": options(found["worker"]["args"])["probes"].port}
    served = {route.path for route in api().routes if isinstance(route, Route)}
    for name, one in found.items():
        for kind in ("livenessProbe", "readinessProbe"):
            called = one.get(kind, {}).get("httpGet")
            if called:
                assert called["path"] in served
                assert f"GET {called['path']} " in (probes.__doc__ or "")
                assert called["port"] in ports[name]
    assert (ports["temporal"], ports["postgres"]) == ({"grpc": 7233}, {"postgres": 5432})


def test_services_budgets_and_workloads_select_the_pods_that_exist(kubernetes: list[Document]) -> None:
    labels = [pod["metadata"]["labels"] for pod in pods(kubernetes).values()]
    ports = {port["name"] for one in containers(kubernetes).values() for port in one["ports"]}
    for one in of_kind(kubernetes, "Service", "Deployment", "StatefulSet", "PodDisruptionBudget"):
        selector = one["spec"]["selector"]
        assert selector.get("matchLabels", selector) in labels
    for service in of_kind(kubernetes, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_the_settings_of_both_clusters_are_settings(
    kubernetes: list[Document], services: dict[str, Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = (one["data"]["pointsman.toml"] for one in of_kind(kubernetes, "ConfigMap"))
    none: Document = {}
    for settings, environment, pod in (
        (text, none, pods(kubernetes)["worker"]["spec"]["terminationGracePeriodSeconds"]),
        ((DEPLOY / "pointsman.cluster.toml").read_text(), services["worker"]["environment"], 40),
    ):
        monkeypatch.chdir(tmp_path)
        Path("pointsman.toml").write_text(settings)
        found = load_settings(environment={name: str(value) for name, value in environment.items()})
        assert found.store_url == "postgresql://pointsman@postgres/pointsman"
        assert found.runtime == "temporal://temporal:7233/default"
        assert found.server.drain.seconds + Seconds(5) < pod, "the container is killed after that"


def test_secrets_and_volumes_that_are_named_exist(kubernetes: list[Document]) -> None:
    made = set[str]()
    for line in (DEPLOY / "kubernetes.yaml").read_text().splitlines():
        if line.startswith("#"):
            made |= {word.partition("=")[2].partition("=")[0] for word in line.split() if "--from-literal=" in word}
    for name, one in containers(kubernetes).items():
        for variable in one["env"]:
            source = variable.get("valueFrom", {}).get("secretKeyRef")
            assert source is None or (source["name"], source["key"] in made) == ("pointsman", True), variable["name"]
        spec = pods(kubernetes)[name]["spec"]
        volumes: set[str] = {volume["name"] for volume in spec.get("volumes", [])}
        volumes |= {"data"} if name == "postgres" else set()
        assert {mount["name"] for mount in one.get("volumeMounts", [])} <= volumes
    for name in ("server", "worker"):
        confined = containers(kubernetes)[name]["securityContext"]
        assert (confined["readOnlyRootFilesystem"], confined["capabilities"]) == (True, {"drop": ["ALL"]})


def test_the_compose_file_of_the_cluster_is_one(services: dict[str, Document]) -> None:
    # The validator knows no merged keys (`<<`).
    merged = StringIO()
    yaml: Any = YAML(typ="safe")
    yaml.dump(load("compose.cluster.yaml")[0], merged)
    found = PyCompose.from_yaml(merged.getvalue())
    found.validate()
    found.validate_volumes()
    for one in ("server", "worker", "heavy"):
        assert services[one]["build"]["args"] == {"LOCK": "cluster"}
        assert "ports" not in services[one], "only the proxy can be reached"
        probed = str(services[one].get("healthcheck", "8000 of the image"))
        assert ("8001/health" in probed) == (one != "server")
    mounted = [volume.partition(":")[0] for one in services.values() for volume in one.get("volumes", [])]
    assert {place for place in mounted if place.startswith("./")} == {
        "./nginx.cluster.conf",
        "./pointsman.cluster.toml",
        "./tls",
    }


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_the_site_in_front_of_several_servers_is_one_that_nginx_understands(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("flows.example.org")
    certificate.private_key_pem.write_to_path(tmp_path / "privkey.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "fullchain.pem")
    site = tmp_path / "site.conf"
    site.write_text((DEPLOY / "nginx.cluster.conf").read_text().replace("/etc/nginx/tls", str(tmp_path)))
    main = tmp_path / "nginx.conf"
    main.write_text(MAIN.format(folder=tmp_path, site=site))
    nginx = shutil.which(str(NGINX))
    done = subprocess.run([str(nginx), "-t", "-c", str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
