"""Tests of charts/podtrail are skipped, saying what is missing, where build.sh has not built helm and kubeconform."""

from pathlib import Path

import pytest

from tests.helm.charts import ASSETS, CRDS, HELMS, SCHEMAS, Helm


@pytest.fixture(scope="session", autouse=True)
def _assets() -> None:
    wanted = [
        *HELMS,
        "kubeconform",
        *(f"crds/{name}.yaml" for name in CRDS),
        *(f"schemas/{version}" for version in SCHEMAS),
    ]
    if missing := [name for name in wanted if not (ASSETS / name).exists()]:
        pytest.skip(f"needs {', '.join(missing)} in {ASSETS}; tests/helm/build.sh builds them with Go")


@pytest.fixture(scope="module", params=HELMS)
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Each Helm in turn."""
    return Helm(Path(ASSETS / request.param), tmp_path_factory.mktemp("helm"))
