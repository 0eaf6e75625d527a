import os
from pathlib import Path

import pytest
from podtrail_scheduler.configuration.features import FeatureGates

from tests.envtest.control_plane import DEFAULT_ASSETS
from tests.scheduler.configuration.reading import Read


@pytest.fixture
def reading() -> Read:
    """With every gate at its default."""
    return Read(FeatureGates())


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    """The binary of kube-scheduler."""
    binary = Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS) / "kube-scheduler"
    if not binary.exists():
        pytest.skip(f"needs {binary}; tests/envtest/build.sh builds it, KUBEBUILDER_ASSETS says where it is")
    return binary
