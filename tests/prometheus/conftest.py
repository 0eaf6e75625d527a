"""Tests marked `prometheus` ask a real one; where there is none, the skip says what is missing."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.built import BUILT

MONITORING = Path(__file__).parents[2] / "docker" / "monitoring"
DEFAULT_PROGRAMS = BUILT / "prometheus"


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of prometheus and promtool; skips the test, saying what is missing."""
    folder = Path(os.environ.get("PODTRAIL_PROMETHEUS") or DEFAULT_PROGRAMS)
    if not all((folder / name).is_file() for name in ("prometheus", "promtool")):
        pytest.skip(
            f"needs prometheus and promtool in {folder} or where PODTRAIL_PROMETHEUS says; "
            "tests/prometheus/build.sh builds them with Go"
        )
    return folder


@pytest.fixture(scope="session")
def rules() -> dict[str, Any]:
    """The groups of rules, as Prometheus itself reads them."""
    manifest = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text("utf-8"))
    return dict(manifest["spec"])
