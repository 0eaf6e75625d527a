"""The same backends, the same key, the same choice as contrib's loadbalancingexporter makes.

`choices.json.gz` was written by `recorder/record.sh`, which asks the exporter's own ring and routing keys (v0.161.0).
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from podtrail_exporters.load_balancing.ring import Ring
from podtrail_exporters.load_balancing.routing import SERVICE, by_attributes

from podtrail.otlp import read_request

RECORDED: Mapping[str, Any] = json.loads(gzip.decompress(Path(__file__).with_name("choices.json.gz").read_bytes()))


@pytest.mark.parametrize("recorded", RECORDED["choices"], ids=lambda recorded: str(len(recorded["backends"])))
def test_the_ring_chooses_as_the_collectors_does(recorded: Any) -> None:
    backends = recorded["backends"]
    ring = Ring(backends)
    chosen = [ring.backend(crc32(bytes.fromhex(key))) for key in recorded["keys"]]
    assert chosen == [backends[at] for at in recorded["chosen"]]


def test_the_order_of_backends_does_not_matter() -> None:
    backends = RECORDED["choices"][-1]["backends"]
    assert Ring(backends[::-1]).owners == Ring(backends).owners


@pytest.mark.parametrize("recorded", RECORDED["routes"], ids=lambda recorded: recorded["key"])
def test_the_key_of_attributes_is_the_collectors(recorded: Any) -> None:
    route = by_attributes(recorded["attributes"] or SERVICE)
    groups = read_request(bytes.fromhex(recorded["request"])).groups
    assert list(route(groups)) == [recorded["crc"]]
