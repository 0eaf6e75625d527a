"""A set of the simulation's seeds, and that the simulation is what it claims to be: repeatable, and able to fail."""

from dataclasses import replace

import pytest

from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.hash_seeds import words_by_hash_seed
from tests.reliability.simulation.mutations import first_found, planted
from tests.reliability.simulation.quiet import without_logs
from tests.reliability.simulation.scenario import Crash, DiskTurns, Reload, Scenario, Send, Setup
from tests.reliability.simulation.telling import wrong_with
from tests.reliability.simulation.traffic import Piece, Trace
from tests.reliability.simulation.world import Outcome, happened
from tests.sizes import large

_CHUNK = 25
_SEEDS = large(75, 1000)
_DIGESTS = """
from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.world import happened
for seed in range(8): print(happened(generated(seed)).digest)
"""


@pytest.mark.parametrize("first", range(0, _SEEDS, _CHUNK))
def test_whatever_happens_ends_as_if_nothing_had_happened(first: int) -> None:
    wrong = {seed: said for seed, said in map(wrong_with, range(first, first + _CHUNK)) if said}
    assert not wrong, f"see ./dev simulate --seed {next(iter(wrong))}"


@pytest.mark.parametrize("seed", [2627, 3594, 4793, 8043, 8326, 8722, 10505])
def test_what_once_went_wrong_goes_well(seed: int) -> None:
    assert not wrong_with(seed)[1], f"see ./dev simulate --seed {seed}"


def test_a_seed_goes_the_same_way_in_every_process() -> None:
    runs = words_by_hash_seed(_DIGESTS)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0]) == 8


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


def test_what_is_delivered_forgotten_and_done_anew_at_earlier_times_says_nothing_of_the_order() -> None:
    attempt = Trace(1, 0, pod=1)
    story = (
        Send(5.439, 1, (Piece(attempt, 0, 2),)),
        DiskTurns(5.926, "write fails"),
        Send(7.937, 2, (Piece(attempt, 2, 5),)),
        Crash(11.176, down=5.686, wall_step=-30.0),
        DiskTurns(12.384, "well"),
    )
    outcome = happened(Scenario(10505, Setup("story", variant=1, durable=True, checkpoint_every=3000), story))
    assert not outcome.wrong
    delivered = [
        line.split("otlp_grpc/backend takes ")[1] for line in outcome.story if "otlp_grpc/backend takes" in line
    ]
    assert delivered == ["2 spans", "3 spans", "2 spans"]


def killed_while_room_is_made(operations: int) -> Scenario:
    """A checkpoint of many traces, a full disk, and two undecided traces: the store is killed while it makes room."""
    many = [Send(round(1 + at / 20, 2), at, (Piece(Trace(at, 5, at % 2 == 0), 0, 3),)) for at in range(1, 13)]
    two = [Send(at, round(10 * at), (Piece(Trace(round(10 * at), 5, failed=True), 0, 2),)) for at in (4.4, 4.5)]
    full = (
        DiskTurns(4.73, "full"),
        Crash(4.74, down=20.0, after_operations=operations),
        Send(4.83, 90, (Piece(Trace(90, 5, failed=True), 0, 5),)),
        DiskTurns(10.73, "well"),
    )
    return Scenario(1, Setup("sampler", variant=1, durable=True, checkpoint_every=300), (*many, *two, *full))


def test_what_is_killed_between_a_checkpoint_that_made_room_and_the_next_loses_no_span() -> None:
    def outcomes() -> list[Outcome]:
        return [happened(killed_while_room_is_made(operations)) for operations in range(10, 17)]

    well = outcomes()
    assert [outcome.wrong for outcome in well] == [[]] * len(well)
    assert any("there is no checkpoint on the disk" in line for outcome in well for line in outcome.story)
    with planted("makes room at the cost of the log"):
        wrong = [line for outcome in outcomes() for line in outcome.wrong]
    assert any("and nobody decided so" in line for line in wrong)


@pytest.mark.parametrize(
    ("mutation", "seed"),
    [
        ("acknowledges before it has written", 3),
        ("notes deliveries before they are made", 0),
        ("notes no deliveries", 1),
        ("acknowledges before a queue on disk is written", 343),
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
    with without_logs():
        assert first_found(mutation, range(seed, seed + 1))
    assert not happened(generated(seed)).wrong
