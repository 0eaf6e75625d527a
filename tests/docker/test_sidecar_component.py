"""The kustomize component puts podtrail behind the scheduler, as the manifest of a Deployment has it."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.built import BUILT
from tests.docker.manifests import KUBERNETES, documents, is_podtrail

KUBECTL = shutil.which("kubectl") or str(BUILT / "node-1.37.1" / "kubectl")


@pytest.mark.skipif(not Path(KUBECTL).is_file(), reason="needs kubectl; tests/node/build.sh builds it")
def test_only_deployments_with_the_label_get_podtrail_and_get_it_last(tmp_path: Path) -> None:
    shutil.copytree(KUBERNETES / "sidecar", tmp_path / "sidecar")
    (whole,) = (each for each in documents(KUBERNETES / "deployment.yaml") if each["kind"] == "Deployment")
    expected = whole["spec"]["template"]["spec"]["containers"]
    bare = {**whole["spec"]["template"]["spec"], "containers": [each for each in expected if not is_podtrail(each)]}
    for name, labels in (("with", {"podtrail/sidecar": "enabled"}), ("without", {})):
        one = {**whole, "metadata": {"name": name, "labels": labels}}
        one["spec"] = {**whole["spec"], "template": {**whole["spec"]["template"], "spec": bare}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(one), "utf-8")
    about = {"resources": ["with.yaml", "without.yaml"], "components": ["sidecar"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(about), "utf-8")
    done = subprocess.run([KUBECTL, "kustomize", tmp_path], check=True, capture_output=True, text=True, timeout=600)
    made = {each["metadata"]["name"]: each for each in yaml.safe_load_all(done.stdout)}
    assert made["with"]["spec"]["template"]["spec"]["containers"] == expected
    assert made["without"]["spec"]["template"]["spec"]["containers"] == bare["containers"]
