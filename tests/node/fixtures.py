"""Tests marked `node` run on a real one, started once a session; where it cannot be, the skip says what is missing."""

import contextlib
import functools
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built import BUILT
from tests.node.enclosure import Enclosure, why_not
from tests.node.node import BINARIES, LOGGED, Node
from tests.recorder import report_log

DEFAULT_ASSETS = BUILT / "node-1.37.1"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node_binaries() -> Path:
    """The folder of what a node consists of; skips the test, saying what is missing."""
    folder = Path(os.environ.get("PODTRAIL_NODE_ASSETS") or DEFAULT_ASSETS)
    missing = [name for name in BINARIES if not (folder / name).is_file()]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)} in {folder} or where PODTRAIL_NODE_ASSETS says; "
            "tests/node/build.sh builds them with Go"
        )
    lacking = "openssl" if shutil.which("openssl") is None else why_not()
    if lacking:
        pytest.skip(f"a node of one's own needs {lacking}")
    return folder


@pytest.fixture(scope="session")
def shared_node(node_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """The node that all tests of the session share, with a stock kube-scheduler; for `node`, not for tests."""
    enclosure = Enclosure()
    node = Node(node_binaries, tmp_path_factory.mktemp("node"), enclosure, tracing="127.0.0.1:4317")
    with contextlib.ExitStack() as ending:
        ending.callback(node.stop)
        for name in LOGGED:
            ending.enter_context(report_log(f"{name}.log", functools.partial(node.log_of, name)))
        with enclosure.network():
            node.start()
            node.start_scheduler()
        yield node


@pytest.fixture
def node(shared_node: Node) -> Iterator[Node]:
    """The node, with the test in its network."""
    with shared_node.enclosure.network():
        yield shared_node


@pytest.fixture
def node_namespace(node: Node) -> str:
    """A namespace of the node's cluster for this test alone, whose Pods are admitted."""
    name = node.api.namespace(f"test-{next(_numbers)}")
    node.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default")
    node.wait_for(f"/api/v1/namespaces/{name}/configmaps/kube-root-ca.crt")
    return name
