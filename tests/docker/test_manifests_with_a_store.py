"""The manifests' lines about a store, taken out of their comments: a right configuration, its folder on a volume."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from tests.docker.manifests import KUBERNETES, ROOT, is_podtrail, stores


@pytest.fixture(params=stores().items(), ids=lambda item: item[0])
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What stands in a manifest, its store included."""
    _, text = request.param
    return [document for document in yaml.safe_load_all(text) if document]


def pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] in {"Deployment", "Pod"}]
    spec: dict[str, Any] = found["spec"] if found["kind"] == "Pod" else found["spec"]["template"]["spec"]
    return spec


def podtrail(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [container for container in pod(objects)["containers"] if is_podtrail(container)]
    return dict(found)


def configuration(objects: list[dict[str, Any]]) -> str:
    """What the container finds as /etc/podtrail/config.yaml: of a ConfigMap in the manifest, or the image's."""
    maps = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
    for volume in pod(objects)["volumes"]:
        data = maps.get(volume.get("configMap", {}).get("name"), {})
        if volume["name"] in {mount["name"] for mount in podtrail(objects)["volumeMounts"]} and "config.yaml" in data:
            return str(data["config.yaml"])
    return (ROOT / "docker" / "sidecar.yaml").read_text(encoding="utf-8")


def test_whoever_keeps_spans_for_others_can_be_given_a_store() -> None:
    ours = {KUBERNETES / "deployment.yaml", KUBERNETES / "static-pod.yaml", KUBERNETES / "gateway" / "gateway.yaml"}
    assert {ROOT / place for place in stores()} >= ours


def test_the_configuration_with_a_store_is_right_and_on_it(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    container = podtrail(objects)
    path = tmp_path / "config.yaml"
    path.write_text(configuration(objects), encoding="utf-8")
    arguments = [each.replace("/etc/podtrail/config.yaml", str(path)) for each in container["args"]]
    assert arguments.pop(0) == "run"
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://backend.example:4317"}
    done = CliRunner().invoke(main, ["validate", *arguments], env=variables)
    assert done.exit_code == 0, done.stderr
    text = configuration(objects) + "\n".join(arguments)
    assert "durable=file_storage" in text or "durable: file_storage" in text
    assert "directory: /var/lib/podtrail/storage" in text


def test_the_folder_is_a_volume_that_can_be_written(objects: list[dict[str, Any]]) -> None:
    (mount,) = [each for each in podtrail(objects)["volumeMounts"] if each["name"] == "storage"]
    assert PurePosixPath("/var/lib/podtrail/storage").is_relative_to(mount["mountPath"])
    assert not mount.get("readOnly")
    (volume,) = [each for each in pod(objects)["volumes"] if each["name"] == "storage"]
    if "persistentVolumeClaim" in volume:
        claims = [each["metadata"]["name"] for each in objects if each["kind"] == "PersistentVolumeClaim"]
        assert volume["persistentVolumeClaim"]["claimName"] in claims
        assert pod(objects)["securityContext"]["fsGroup"] == podtrail(objects)["securityContext"]["runAsUser"]
