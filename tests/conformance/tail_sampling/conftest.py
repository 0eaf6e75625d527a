"""Recorded answers of the Collector's tail sampling processor, and which of them podtrail has the means to give.

`vectors/` holds the applicable ones, as recorded (README.md there); `inventory.json` names every recorded vector with
what it needs beyond the sampler's means, nothing for those that are here.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from podtrail.config.feature_gates import KNOWN_GATES

VECTORS = Path(__file__).parent / "vectors"
INVENTORY = Path(__file__).parent / "inventory.json"


def read_vector(path: Path) -> dict[str, Any]:
    """Return a recorded vector."""
    vector: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return vector


def needs(vector: Mapping[str, Any]) -> list[str]:
    """Return what a vector needs beyond the sampler's means: gates."""
    return sorted({f"gate {gate}" for gate in vector.get("feature_gates") or () if gate not in KNOWN_GATES})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a `vector` with each of them."""
    if "vector_path" in metafunc.fixturenames:
        paths = sorted(VECTORS.glob("*.json.gz"))
        metafunc.parametrize("vector_path", paths, ids=[path.name.removesuffix(".json.gz") for path in paths])


@pytest.fixture
def vector(vector_path: Path) -> dict[str, Any]:
    """Return a recorded vector."""
    return read_vector(vector_path)


@pytest.fixture
def inventory() -> dict[str, list[str]]:
    """Return every recorded vector's name with what it needs beyond the sampler's means."""
    found: dict[str, list[str]] = json.loads(INVENTORY.read_text(encoding="utf-8"))
    return found


@pytest.fixture(name="needs")
def _needs() -> Callable[[Mapping[str, Any]], list[str]]:
    """Return the rule by which vectors were selected."""
    return needs
