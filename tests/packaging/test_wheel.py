"""What is installed is what the repository holds, and it runs without it."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

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
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=120)
    python = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = home / "lib" / version / "site-packages"
    # The dependencies alone: by a plain path, none of its .pth files (the development install's) are followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def run(binaries: Path, *arguments: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OTEL_"))}
    command = [str(binaries / arguments[0]), *arguments[1:]]
    return subprocess.run(
        command, cwd=directory, env=environment, check=False, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_in_the_wheel_and_typed(wheel: Path, package: str) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert f"{package}/__init__.py" in names
    assert f"{package}/py.typed" in names


def test_every_tracked_file_of_the_packages_is_in_the_wheel_and_nothing_else(wheel: Path, root: Path) -> None:
    rooms = (
        "src",
        "receivers",
        "processors",
        "exporters",
        "extensions",
        "instrumentation",
        "kubernetes",
        "scheduler",
        "webhook",
    )
    files = {
        path.relative_to(root / room).as_posix()
        for room in rooms
        for path in (root / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == files
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


def test_the_installed_command_validates_the_main_configuration(installed: Path, root: Path, tmp_path: Path) -> None:
    done = run(installed, "podtrail", "validate", "--config", str(root / "pipeline.yaml"), directory=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_installed_command_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    for package in PACKAGES:
        done = run(installed, "python", "-c", f"import {package}; print({package}.__file__)", directory=tmp_path)
        assert done.stdout.startswith(str(installed.parent)), done.stderr


def test_the_installed_command_knows_its_components_and_version(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "podtrail", "components", directory=tmp_path)
    assert done.returncode == 0
    for component in ("otlp", "scheduler", "tail_sampling", "link_stitching", "otlp_grpc", "file", "viewer"):
        assert component in done.stdout
    assert "0.1.0" in run(installed, "podtrail", "--version", directory=tmp_path).stdout


def test_the_installed_command_runs_a_workload_to_its_end(installed: Path, tmp_path: Path) -> None:
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


def test_the_source_distribution_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "out")]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (built,) = (tmp_path / "out").glob("*.whl")
    assert built.name == wheel.name
    assert set(zipfile.ZipFile(built).namelist()) == set(zipfile.ZipFile(wheel).namelist())
