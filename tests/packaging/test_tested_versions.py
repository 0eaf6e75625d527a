"""docs/stability.md names the versions that the tests are made for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "stability.md").read_text("utf-8")


def versions(pattern: str, *paths: str) -> str:
    """Return what the pattern finds in files, as the page lists it."""
    found = {match for path in paths for match in re.findall(pattern, (ROOT / path).read_text("utf-8"))}
    return ", ".join(sorted(found))


GO = "instrumentation/go/kubescheduler"


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("control plane, kubelet", versions(r"envtest-([\d.]+)", "tests/envtest/control_plane.py")),
        ("schemas", versions(r'"v([\d.]+)"', "tests/helm/charts.py")),
        (
            "kube-scheduler with spans",
            versions(r"k8s\.io/kubernetes v(\S+)", *(f"{GO}/{m}.mod" for m in ("go-1.35", "go-1.36", "go"))),
        ),
        ("Helm", versions(r"helm\.sh/helm/v\d v(\S+)", "tests/helm/go.mod")),
        ("Kafka", versions(r"<kafka\.version>([\d.]+)<", "tests/kafka/pom.xml")),
        ("Collector", versions(r"contrib's v(\d+\.\d+)", "docs/compatibility.md")),
        ("Python", versions(r'requires-python = ">=([\d.]+)"', "pyproject.toml") + ", and the newest that Debian has"),
    ],
)
def test_the_page_names_the_tested_versions(what: str, wanted: str) -> None:
    (row,) = re.findall(rf"^\| [^|]*{what}[^|]* \| (.*) \|$", PAGE.partition("## Tested")[2], re.MULTILINE)
    assert row == wanted
