"""The files under deploy/: the programs that use them accept them, and an image keeps its guarantees."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trustme
from compose_spec import PyCompose
from ruamel.yaml import YAML

from pointsman.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
MAIN = (
    "events {{}}\nerror_log {folder}/error.log;\npid {folder}/pid;\nhttp {{\n  access_log off;\n  include {site};\n}}\n"
)


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def compose() -> Any:
    yaml: Any = YAML(typ="safe")
    return yaml.load(DEPLOY / "compose.yaml")


def test_the_settings_are_settings() -> None:
    settings = Settings.model_validate(tomllib.loads((DEPLOY / "pointsman.toml").read_text()))
    assert settings.server.names == ("flows.example.org",)
    assert settings.server.drain.seconds + 5 < 40, "service managers wait 40 s"


def test_the_image_runs_as_an_unprivileged_user_with_a_health_check() -> None:
    found = instructions()
    names = [name for name, _ in found]
    assert "ADD" not in names
    after = names[len(names) - 1 - names[::-1].index("FROM") :]
    assert after.index("USER") < after.index("ENTRYPOINT")
    assert dict(found)["USER"] == "10001:10001"
    assert "/ready" in dict(found)["HEALTHCHECK"]
    assert dict(found)["STOPSIGNAL"] == "SIGTERM"
    assert dict(found)["ENTRYPOINT"] == '["pointsman"]'
    for _, image in (one for one in found if one[0] == "FROM"):
        assert re.fullmatch(r"(python:3\.\d+|node:\d+)[\w-]+( AS \w+)?", image), "a version, not whatever is newest"


def test_packages_of_the_image_are_pinned_by_hash() -> None:
    installs = [rest for name, rest in instructions() if name == "RUN" and "pip install" in rest]
    assert len(installs) == 3
    assert "--require-hashes -r requirements/docs.lock" in installs[0]
    assert "--require-hashes -r requirements/$LOCK.lock" in installs[1]
    assert ("ARG", "LOCK=runtime") in instructions()
    assert "--no-deps --no-build-isolation ." in installs[2], "nothing is fetched that has no hash"
    served = {"psycopg", "uvicorn", "hatchling"}
    for name, packages in (
        ("runtime", served),
        ("cluster", served | {"temporalio", "restate-sdk"}),
        ("docs", {"zensical", "mkdocstrings"}),
    ):
        lock = (ROOT / "requirements" / f"{name}.lock").read_text()
        pins = re.findall(r"^([a-z0-9-]+)(?:\[[^]]+\])?==", lock, re.MULTILINE)
        assert packages <= {*pins}
        assert lock.count("--hash=sha256:") >= len(pins)


def test_the_image_has_the_versions_that_the_tests_ran_with() -> None:
    pins = re.compile(r"^([a-z0-9-]+)(?:\[[^]]+\])?(==[^ ;]+)", re.MULTILINE)
    names = ("core", "runtime", "cluster", "docs", "dev")
    core, runtime, cluster, docs, dev = (
        {*pins.findall((ROOT / "requirements" / f"{name}.lock").read_text())} for name in names
    )
    assert core < runtime < cluster < dev, "run `make lock`"
    assert docs < dev, "run `make lock`"


def test_everything_that_is_copied_into_the_image_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            for source in shlex.split(rest)[:-1]:
                assert (ROOT / source).exists(), source
                assert source in allowed or source.startswith("web/"), f"{source} is not in .dockerignore"


def test_the_compose_file_is_one() -> None:
    """All keys and values follow the specification, and all references exist."""
    found = PyCompose.from_yaml((DEPLOY / "compose.yaml").read_text())
    found.validate()
    found.validate_volumes()
    with pytest.raises(ValueError, match="read_onli"):
        PyCompose.from_yaml((DEPLOY / "compose.yaml").read_text().replace("read_only", "read_onli"))


def test_the_services_are_bounded_and_reachable_from_this_machine_only() -> None:
    services = compose()["services"]
    server = services["server"]
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in server["security_opt"]
    assert "127.0.0.1:8000:8000" in server["ports"]
    assert "ports" not in services["postgres"]
    assert (ROOT / "deploy" / server["build"]["context"] / server["build"]["dockerfile"]).exists()
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            known = source in compose()["volumes"] or source == "./tls" or (DEPLOY / source).exists()
            assert known, source


def test_no_secret_is_in_the_files() -> None:
    text = "".join(path.read_text() for path in DEPLOY.iterdir())
    assert re.findall(r"(?i)password: (?!\$\{)", text) == []
    assert (ROOT / ".gitignore").read_text().splitlines().count(".env") == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    unit = tmp_path / "pointsman.service"
    text = (DEPLOY / "pointsman.service").read_text()
    unit.write_text(text.replace("/usr/local/bin/pointsman", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "pointsman.service" in line] == []
    assert "Type=notify" in text


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_the_site_is_one_that_nginx_understands(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("flows.example.org")
    certificate.private_key_pem.write_to_path(tmp_path / "privkey.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "fullchain.pem")
    site = tmp_path / "site.conf"
    site.write_text((DEPLOY / "nginx.conf").read_text().replace("/etc/nginx/tls", str(tmp_path)))
    main = tmp_path / "nginx.conf"
    main.write_text(MAIN.format(folder=tmp_path, site=site))
    done = subprocess.run([str(NGINX), "-t", "-c", str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
