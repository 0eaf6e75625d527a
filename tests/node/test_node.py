"""What builds the node and what starts it mean the same programs and the same release."""

import re
from pathlib import Path

from tests.envtest.control_plane import DEFAULT_ASSETS as CONTROL_PLANE_ASSETS
from tests.node.fixtures import DEFAULT_ASSETS
from tests.node.node import BINARIES

HERE = Path(__file__).parent


def test_the_build_makes_what_the_node_starts() -> None:
    script = (HERE / "build.sh").read_text()
    for name in BINARIES:
        assert re.search(rf"^make .*\b{name}\b", script, re.MULTILINE), name


def test_the_node_is_of_the_control_planes_release() -> None:
    named = re.findall(r"(?:node|envtest)-([\d.]*\d)", (HERE / "build.sh").read_text())
    assert {DEFAULT_ASSETS.name.removeprefix("node-"), *named} == {CONTROL_PLANE_ASSETS.name.removeprefix("envtest-")}
