"""The state of a chain as bytes: what is taken and restored goes on as if nothing had been."""

from pathlib import Path

import pytest

from podtrail.pipeline.checkpoint import CheckpointError
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.recording.merging import merged
from podtrail.replay.replayer import read_config
from tests.pipeline.interrupted import Arrival, Run, Told

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests/data/recordings/node/podtrail/spans.otlp.zst"


@pytest.fixture(scope="module")
def node() -> list[Arrival]:
    return [(record.arrival, record.intake) for record in merged([NODE], lambda damage: pytest.fail(str(damage)))]


@pytest.fixture(scope="module")
def default() -> Settings:
    return read_settings(read_config(ROOT / "pipeline.yaml"))


@pytest.mark.parametrize("at", [1, 37, 120, 200])
def test_the_default_pipeline_goes_on_from_a_checkpoint_as_if_nothing_had_been(
    default: Settings, node: list[Arrival], at: int
) -> None:
    whole, parted = Told(), Told()
    uninterrupted, first = Run(default, whole), Run(default, parted)
    uninterrupted.feed(node[:at])
    first.feed(node[:at])
    second = Run(default, parted, now=first.replayer.now)
    second.restore(first.taken())
    assert second.says() == uninterrupted.says()

    for run in (uninterrupted, second):
        run.feed(node[at:])
    assert second.says() == uninterrupted.says()
    for run in (uninterrupted, second):
        run.replayer.finish()
    assert parted.out == whole.out


def test_what_is_damaged_is_refused_and_the_chain_stays_empty(default: Settings, node: list[Arrival]) -> None:
    run = Run(default, Told())
    run.feed(node[:50])
    state = run.taken()[0]
    other = Run(default, Told())
    for damaged in (b"", state[:-1], state[:1000], state[:5000] + b"x" + state[5001:], b"x" + state[1:]):
        with pytest.raises(CheckpointError):
            other.checkpointers[0].restore(damaged)
    assert other.says() == Run(default, Told()).says()
    other.checkpointers[0].restore(state)
    assert other.says() == run.says()
