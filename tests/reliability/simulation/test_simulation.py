"""A set of the simulation's seeds, and that the simulation is what it claims to be: repeatable, and able to fail."""

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.mutations import first_found
from tests.reliability.simulation.scenario import Crash, Reload, Scenario, Send, Setup
from tests.reliability.simulation.telling import wrong_with
from tests.reliability.simulation.traffic import Piece, Trace
from tests.reliability.simulation.world import happened

_ROOT = Path(__file__).parents[3]
_CHUNK = 25
_SEEDS = 250
_DIGESTS = """
from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.world import happened
for seed in range(30): print(happened(generated(seed)).digest)
"""


@pytest.mark.parametrize("first", range(0, _SEEDS, _CHUNK))
def test_whatever_happens_ends_as_if_nothing_had_happened(first: int) -> None:
    wrong = {seed: said for seed, said in map(wrong_with, range(first, first + _CHUNK)) if said}
    assert not wrong, f"see ./dev simulate --seed {next(iter(wrong))}"


def test_a_seed_goes_the_same_way_in_every_process() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            cwd=_ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0]) == 30


def test_a_story_is_told_in_lines() -> None:
    trace = Trace(1, spans=2)
    scenario = Scenario(
        0,
        Setup("sampler", durable=True),
        (
            Send(1.0, 1, (Piece(trace, 0, 1),)),
            Crash(2.0, power=True),
            Send(2.5, 2, (Piece(trace, 1, 2),)),
        ),
    )
    assert scenario.lines()[1:] == [
        "    1.000 s  request 1 is sent (trace 1, spans 1 to 1 of 2)",
        "    2.000 s  power is lost; it starts again 1 s later",
        "    2.500 s  request 2 is sent (trace 1, spans 2 to 2 of 2)",
    ]
    outcome = happened(scenario)
    assert not outcome.wrong
    assert [line.split("s  ")[1] for line in outcome.story if "request" in line] == [
        "request 1 is sent (trace 1, spans 1 to 1 of 2)",
        "request 1 is acknowledged",
        "request 2 is sent (trace 1, spans 2 to 2 of 2)",
        "request 2 is acknowledged",
    ]


def test_a_reload_that_a_kill_cuts_off_before_its_checkpoint_has_not_happened() -> None:
    setup = Setup("sampler", variant=1, durable=True, checkpoint_every=20_000, consumers=1, queue_size=1000)
    attempt = Trace(1, 0, pod=1)
    story = (
        Crash(11.267, down=16.62, after_operations=11),
        Send(12.664, 2, (Piece(attempt, 4, 5),)),
        Reload(14.135, replace(setup, variant=2)),
        Reload(14.509, setup),
    )
    assert not happened(Scenario(1498, setup, story)).wrong


@pytest.mark.parametrize(
    ("mutation", "seed"),
    [
        ("acknowledges before it has written", 3),
        ("notes deliveries before they are made", 0),
        ("notes no deliveries", 1),
        ("sends what a queue on disk has sent", 1),
        ("forgets the log without a checkpoint", 0),
        ("never syncs", 9),
        ("keeps back too much", 6),
        ("replays without the clock", 1),
        ("checkpoints without what is owed", 0),
        ("believes a sync that failed", 93),
    ],
)
def test_a_fault_that_is_planted_is_found(mutation: str, seed: int) -> None:
    logging.disable(logging.CRITICAL)
    try:
        assert first_found(mutation, range(seed, seed + 1))
    finally:
        logging.disable(logging.NOTSET)
    assert not happened(generated(seed)).wrong
