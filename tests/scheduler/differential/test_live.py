"""What is recorded is what kube-scheduler says: some cases are put to it again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.sizes import large

from . import answers, record
from .case import Case
from .compare import Comparison, compare
from .families import FAMILIES
from .generate import case

ASKED = FAMILIES if large(0, 1) else ("PrioritySort", "preemption", "hints", "devices", "VolumeBinding", "changing")
"""Of every way of asking one: for the order, with victims, with a change, for devices, with volumes, in rounds."""
TRIES = 3
"""Its informers of different kinds are not in step: on a busy machine a Pod may be seen before a claim of it."""


@pytest.fixture(scope="module")
def recorder(kubernetes_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[record.Recorder]:
    plane = record.start(kubernetes_binaries, tmp_path_factory.mktemp("control-plane"))
    try:
        with closing(record.Recorder(plane)) as recorder:
            yield recorder
    finally:
        plane.stop()


@pytest.mark.control_plane
@pytest.mark.parametrize("family", ASKED)
def test_kube_scheduler_answers_as_it_did_when_it_was_recorded(recorder: record.Recorder, family: str) -> None:
    asked = case(family, 0)

    for _ in range(TRIES):
        differing = _differing(recorder, asked)
        if not differing:
            break

    assert not differing, "\n".join(f"{each.place}: {each.theirs} when recorded, {each.ours}" for each in differing)


def _differing(recorder: record.Recorder, asked: Case) -> list[Comparison]:
    """Up to the first Pod that a tie put on another node: after that the cluster is another one."""
    recorded, now = answers.read()[asked.name], recorder.ask(asked)
    same = 0
    for before, after in zip(recorded.steps, now.steps, strict=True):
        same += 1
        if before.node != after.node:
            break
    cut = [each._replace(steps=each.steps[:same]) for each in (recorded, now)]
    return [each for each in compare(*cut) if not each.alike and not _is_error_of_some_node(each)]


def _is_error_of_some_node(comparison: Comparison) -> bool:
    """Nodes are filtered side by side, and the error that comes first is told."""
    return comparison.field == "message" and comparison.theirs.startswith("running ")
