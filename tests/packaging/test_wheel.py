"""What is installed is what the repository holds, and it runs without it."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.free_ports import free_ports
from tools.docs.rooms import SOURCE_ROOTS

PACKAGES = (
    "podtrail",
    "podtrail_receivers",
    "podtrail_processors",
    "podtrail_exporters",
    "podtrail_extensions",
    "podtrail_instrumentation",
    "podtrail_kubernetes",
    "podtrail_scheduler",
)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that has the wheel, and what it depends on from this environment."""
    home = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=600)
    python = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    command += ["--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = home / "lib" / version / "site-packages"
    # The dependencies alone: by a plain path, none of its .pth files (the development install's) are followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def run(binaries: Path, *arguments: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OTEL_"))}
    command = [str(binaries / arguments[0]), *arguments[1:]]
    return subprocess.run(
        command, cwd=directory, env=environment, check=False, capture_output=True, text=True, timeout=600
    )


def test_every_package_is_in_the_wheel_and_typed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [each for each in PACKAGES if not {f"{each}/__init__.py", f"{each}/py.typed"} <= set(names)] == []


def test_every_tracked_file_of_the_packages_is_in_the_wheel_and_nothing_else(wheel: Path, root: Path) -> None:
    files = {
        path.relative_to(root / room).as_posix()
        for room in SOURCE_ROOTS
        for package in (root / room).glob("podtrail*")  # beside them: the instrumentation in Go
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    demo = {f"podtrail/demo/{name}" for name in ("pipeline.yaml", "page.yaml", "story.otlp.zst")}
    assert inside == files | demo
    assert "podtrail/pages/templates/skeleton.html" in inside
    assert "podtrail/pages/templates/common.css" in inside
    assert "podtrail_extensions/viewer/templates/base.html" in inside
    assert "podtrail_extensions/viewer/static/podtrail.css" in inside


def test_the_wheel_carries_licence_script_and_pytest_plugin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name)
        metadata = archive.read(f"{info}/METADATA").decode()
        entries = archive.read(f"{info}/entry_points.txt").decode()
        assert f"{info}/licenses/LICENSE" in archive.namelist()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "podtrail = podtrail.testing.plugin" in entries
    assert "podtrail = podtrail." in entries


def test_the_installed_command_comes_from_the_wheel_and_runs_a_workload_to_its_end(
    installed: Path, tmp_path: Path
) -> None:
    code = "".join(f"import {package}; print({package}.__file__);" for package in PACKAGES)
    places = run(installed, "python", "-c", code, directory=tmp_path)
    assert [line for line in places.stdout.splitlines() if not line.startswith(str(installed.parent))] == []
    assert len(places.stdout.splitlines()) == len(PACKAGES), places.stderr
    config = """
receivers: {scheduler: {speed: 0, workload: {length: 30s}}}
exporters: {file: {path: kept.jsonl}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [scheduler], exporters: [file]}}
"""
    (tmp_path / "config.yaml").write_text(config)
    done = run(installed, "podtrail", "run", "--config", "config.yaml", "--exit-when-done", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept.jsonl").stat().st_size > 1000
    assert "0.1.0" in run(installed, "podtrail", "--version", directory=tmp_path).stdout


@pytest.mark.parametrize("of", [(), ("--story",)], ids=["simulated", "recorded"])
def test_the_demo_runs_from_the_wheel_alone(installed: Path, tmp_path: Path, of: tuple[str, ...]) -> None:
    offset = free_ports(1)[0] - 4317
    options = ("--exit-when-done", f"--port-offset={offset}", "--output=d")
    done = run(installed, "podtrail", "demo", *of, *options, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "missing" not in done.stderr
    if not of:
        assert (tmp_path / "d" / "kept.jsonl").stat().st_size > 100_000


def test_the_source_distribution_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "out")]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=600)
    (built,) = (tmp_path / "out").glob("*.whl")
    assert built.name == wheel.name
    assert set(zipfile.ZipFile(built).namelist()) == set(zipfile.ZipFile(wheel).namelist())
