"""The image's recipe fits the repository; the engine itself is not needed to see that."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.service import SHUTDOWN_SECONDS

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def of(word: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == word]


def copied() -> list[str]:
    """Return the sources that are copied from the repository."""
    return [source for rest in of("COPY") if "--from=" not in rest for source in rest.split()[:-1]]


def test_everything_that_is_copied_exists_and_passes_the_ignore_file() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied()
    for source in copied():
        assert (ROOT / source).exists(), source
        assert any(source == path or source.startswith(f"{path}/") for path in allowed), source


def test_every_room_of_the_wheel_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {package.split("/")[0] for package in wheel["packages"]} <= set(copied())
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= set(copied())


def test_only_hashed_locks_that_exist_are_installed() -> None:
    locks = set(re.findall(r"-r (locks/\S+)", " ".join(of("RUN"))))
    assert locks == {"locks/runtime.txt", "locks/build.txt", "locks/native.txt"}
    assert all((ROOT / lock).is_file() for lock in locks)
    assert " ".join(of("RUN")).count("--require-hashes") == len(locks)


def test_it_runs_as_a_numbered_user_that_is_not_root() -> None:
    (user,) = of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_its_command_is_one_that_podtrail_has() -> None:
    (entry,), (command,) = of("ENTRYPOINT"), of("CMD")
    program, arguments = yaml.safe_load(entry), yaml.safe_load(command)
    assert program == ["/opt/podtrail/bin/podtrail"]
    assert arguments == ["run", "--config", "/etc/podtrail/config.yaml"]
    assert "docker/sidecar.yaml /etc/podtrail/config.yaml" in of("COPY")
    assert "--config" in CliRunner().invoke(main, ["run", "--help"]).stdout


@pytest.fixture(params=["compose.yaml", "compose.kafka.yaml"])
def compose(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a file of Compose says, without services that are not ours."""
    read: dict[str, Any] = yaml.safe_load((DOCKER / request.param).read_text(encoding="utf-8"))
    read["services"] = {name: each for name, each in read["services"].items() if each["image"].startswith("podtrail:")}
    return read


def test_compose_mounts_files_that_exist_and_publishes_nothing_to_the_network(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        for mount in service.get("volumes", ()):
            source, target, mode = mount.split(":")
            assert (DOCKER / source).is_file(), name
            assert mode == "ro"
            assert target in [*service.get("entrypoint", ()), *service["command"]], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), name
    (build,) = (service["build"] for service in compose["services"].values() if "build" in service)
    assert (DOCKER / build["context"] / build["dockerfile"]).resolve() == DOCKER / "Dockerfile"


def test_compose_gives_the_end_more_time_than_podtrail_takes(compose: dict[str, Any]) -> None:
    given = [service["stop_grace_period"] for service in compose["services"].values() if "stop_grace_period" in service]
    assert given
    assert all(float(grace.removesuffix("s")) > SHUTDOWN_SECONDS for grace in given)


def test_each_service_of_compose_has_a_configuration_that_is_right_with_its_variables(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if "entrypoint" in service:
            continue
        mounted = [volume.split(":")[0] for volume in service.get("volumes", ())]
        config = DOCKER / (mounted[0] if mounted else "sidecar.yaml")
        sets = [argument for argument in service.get("command", ()) if argument.startswith("--set=")]
        command = ["validate", "--config", str(config), *sets]
        done = CliRunner().invoke(main, command, env=service.get("environment", {}))
        assert done.exit_code == 0, f"{name}: {done.stderr}"


def test_on_kafka_nobody_begins_before_there_are_topics() -> None:
    services = yaml.safe_load((DOCKER / "compose.kafka.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("agent", "gateway-0", "gateway-1"):
        assert services[name]["depends_on"]["topics"] == {"condition": "service_completed_successfully"}
