"""Writes the fields of the API's objects that a workload may hold, so that a misspelt one is found without a cluster.

    .venv/bin/python -m tools.object_fields

They are those of the official Python client, whose models are generated from the API server's OpenAPI.
"""

import json
import re
from pathlib import Path
from typing import Any

from podtrail_scheduler.objects.decoding import DECODERS

from kubernetes import client

FILE = Path(__file__).parent.parent / "scheduler/podtrail_scheduler/workload/object_fields.json"
_PREFIXES = ("", "V1", "ResourceV1")
"""Of a kind's model; a type within it is named whole."""


def fields() -> dict[str, dict[str, str]]:
    """Return the fields of each type, each with the type of its values; "" where nothing is known of these."""
    found: dict[str, dict[str, str]] = {}
    left = [kind for _, kind in DECODERS] + ["PriorityClass", "LimitRange", "RuntimeClass"]
    while left:
        name = left.pop()
        if name in found:
            continue
        model: Any = next(filter(None, (getattr(client, prefix + name, None) for prefix in _PREFIXES)))
        found[name] = {}
        for attribute, key in model.attribute_map.items():
            inner = re.findall(r"[A-Za-z]*V\d\w*", model.openapi_types[attribute])
            found[name][key] = inner[0] if inner else ""
            left += inner
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def text() -> str:
    """Return what the file has to say."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(known)}" for name, known in fields().items()) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
