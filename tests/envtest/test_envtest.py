"""What builds the control plane and what looks for it mean the same release and the same folder."""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_one_release_is_named_everywhere() -> None:
    (version,) = re.findall(r"^\tk8s\.io/kubernetes v(\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)
    for path in (HERE / "build.sh", HERE / "control_plane.py"):
        assert re.findall(r"envtest-([\d.]*\d)", path.read_text()) == [version] * path.read_text().count("envtest-")


def test_ci_builds_what_the_tests_start() -> None:
    assert "tests/envtest/build.sh" in (ROOT / ".ci" / "run").read_text()
    built = re.findall(r"^build (\S+) ", (HERE / "build.sh").read_text(), re.MULTILINE)
    (started,) = re.findall(r"^BINARIES = \((.*)\)$", (HERE / "control_plane.py").read_text(), re.MULTILINE)
    assert sorted(built) == sorted([*re.findall(r'"(\S+)"', started), "kubectl"])


def test_the_mark_of_tests_that_need_it_is_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert any(marker.startswith("control_plane:") for marker in project["tool"]["pytest"]["ini_options"]["markers"])
