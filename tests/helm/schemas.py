"""Writes JSON schemas for kubeconform from the OpenAPI document that Kubernetes is released with.

python3 schemas.py swagger.json FOLDER
"""

import json
import sys
from pathlib import Path

_LOOSER = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}
"""What the document calls a string though the API server takes numbers, too."""


def main(swagger: Path, folder: Path) -> None:
    """Write one file a kind, and one of the definitions that all refer to."""
    definitions = json.loads(swagger.read_text("utf-8"))["definitions"] | _LOOSER
    folder.mkdir(parents=True, exist_ok=True)
    for name, definition in definitions.items():
        if "properties" in definition:
            definition.setdefault("additionalProperties", False)
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            words = [kind["kind"], kind["group"].partition(".")[0], kind["version"]]
            path = folder / ("-".join(filter(None, words)).lower() + ".json")
            path.write_text(json.dumps({"$ref": f"_definitions.json#/definitions/{name}"}), "utf-8")
    (folder / "_definitions.json").write_text(json.dumps({"definitions": definitions}), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
