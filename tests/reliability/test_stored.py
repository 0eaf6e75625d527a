"""What survives SIGTERM, SIGKILL, full disks, damaged files and backends that are down, for each setting of storage."""

import os
import resource
import signal
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.crash.lives import Life
from tests.reliability.crash.load import Request
from tests.reliability.crash.sending import Outcome
from tests.reliability.crash.settings import Setting
from tests.reliability.crash.stage import Stage, stage

QUEUE = Setting("grpc", "plain", "otlp_grpc", "queue")
DURABLE = Setting("grpc", "sampled", "otlp_grpc", "durable")
BOTH = Setting("proto", "sampled", "otlp_http", "both")
SOME = 40
"""Requests."""
EACH = pytest.mark.parametrize("setting", [QUEUE, DURABLE, BOTH], ids=lambda setting: setting.storage)


def segments(here: Stage) -> list[Path]:
    """Return the segments that hold something, of all stores below the folder."""
    return sorted(path for path in here.store.rglob("*.otlp") if path.stat().st_size > 200)


async def ended(life: Life, number: signal.Signals = signal.SIGTERM) -> int:
    life.tell(number)
    return await life.end()


async def all_comes_once(here: Stage, life: Life, requests: Sequence[Request]) -> None:
    """End what is undecided, and see that all comes that was acknowledged."""
    closing = here.client.closing()
    await here.send_until_taken(life, closing)
    expected = here.kept([*requests, *closing])
    assert expected
    await here.comes(expected)
    assert await ended(life) == 0, life.said
    times = here.times()
    assert set(times) <= expected
    # With both a batch is in two journals, and a kill may come between the notes of its way from one to the other.
    assert max(times.values()) == 1 or here.setting.storage == "both"


@EACH
async def test_sigterm_leaves_what_is_undecided_and_undelivered_for_the_next_start(
    setting: Setting, tmp_path: Path
) -> None:
    async with stage(setting, tmp_path) as here:
        here.recorder.refusing = True
        first = await here.start()
        requests = here.requests(SOME)
        assert set(await here.send(first, requests)) == {Outcome.TAKEN}
        await ended(first)
        assert "missing" not in first.said
        assert not here.recorder.ids
        here.recorder.refusing = False
        await all_comes_once(here, await here.start(), requests)


@EACH
async def test_sigkill_costs_nothing_that_was_acknowledged(setting: Setting, tmp_path: Path) -> None:
    async with stage(setting, tmp_path) as here:
        here.recorder.refusing = True
        requests: list[Request] = []
        for _ in range(3):
            life = await here.start()
            requests += here.requests(SOME)
            assert set(await here.send(life, requests[-SOME:])) == {Outcome.TAKEN}
            assert await ended(life, signal.SIGKILL) == -signal.SIGKILL
        here.recorder.refusing = False
        await all_comes_once(here, await here.start(), requests)


@EACH
async def test_a_full_disk_refuses_retryably_and_goes_on_by_itself(setting: Setting, tmp_path: Path) -> None:
    async with stage(setting, tmp_path) as here:
        life = await here.start()
        requests = here.requests(3 * SOME)
        assert set(await here.send(life, requests[:SOME])) == {Outcome.TAKEN}
        largest = max(path.stat().st_size for path in segments(here))
        resource.prlimit(life.pid, resource.RLIMIT_FSIZE, (largest + 1000, resource.RLIM_INFINITY))
        outcomes = [Outcome.TAKEN]
        while outcomes == [Outcome.TAKEN]:
            outcomes = await here.send(life, [next(request for request in requests if request.taken_in is None)])
        assert outcomes == [Outcome.REFUSED]
        assert await life.says("senders are asked to come again until there is room")
        unlimited = resource.RLIM_INFINITY, resource.RLIM_INFINITY
        resource.prlimit(life.pid, resource.RLIMIT_FSIZE, unlimited)
        await here.send_until_taken(life, [request for request in requests if request.taken_in is None])
        assert await life.says("takes what is written again")
        assert await ended(life, signal.SIGKILL) == -signal.SIGKILL
        life = await here.start()
        closing = here.client.closing()
        await here.send_until_taken(life, closing)
        await here.comes(here.kept([*requests, *closing]))
        assert await ended(life) == 0


async def test_a_full_disk_at_a_kill_keeps_what_was_acknowledged_before(tmp_path: Path) -> None:
    async with stage(BOTH, tmp_path) as here:
        life = await here.start()
        here.recorder.refusing = True
        requests = here.requests(2 * SOME)
        assert set(await here.send(life, requests[:SOME])) == {Outcome.TAKEN}
        largest = max(path.stat().st_size for path in segments(here))
        resource.prlimit(life.pid, resource.RLIMIT_FSIZE, (largest + 700, resource.RLIM_INFINITY))
        outcomes = [Outcome.TAKEN]
        while outcomes == [Outcome.TAKEN]:
            outcomes = await here.send(life, [next(request for request in requests if request.taken_in is None)])
        assert outcomes == [Outcome.REFUSED]
        assert await ended(life, signal.SIGKILL) == -signal.SIGKILL
        here.recorder.refusing = False
        life = await here.start()
        await here.send_until_taken(life, [request for request in requests if request.taken_in is None])
        await all_comes_once(here, life, requests)


def flip(path: Path) -> None:
    """Change a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)


def tear(path: Path) -> None:
    """Cut a file within its last frame."""
    os.truncate(path, path.stat().st_size - 5)


def replace(path: Path) -> None:
    """Put something else in the place of a file."""
    path.write_bytes(b"#!/bin/sh\necho this is no segment\n" * 20)


def first(here: Stage) -> Path:
    """Return the oldest segment: of a queue what is sent first, of a log what its checkpoint has as well."""
    return segments(here)[0]


def last(here: Stage) -> Path:
    """Return the newest segment, the log's where there is one: nothing else has what is in it."""
    return segments(here)[-1]


# What damage of each kind, anywhere, costs a journal: tests/storage/test_damage.py.
@pytest.mark.parametrize(
    ("setting", "damaged", "damage"),
    [(DURABLE, last, flip), (DURABLE, first, tear), (QUEUE, first, replace), (BOTH, last, Path.unlink)],
    ids=["durable-last-flipped", "durable-first-torn", "queue-first-foreign", "both-last-missing"],
)
async def test_of_a_damaged_file_what_can_be_read_is_used_and_the_start_goes_on(
    setting: Setting, damaged: Any, damage: Any, tmp_path: Path
) -> None:
    async with stage(setting, tmp_path) as here:
        requests = await killed_twice(here)
        damage(damaged(here))
        life, sent = await goes_on(here, requests)
        if damage is not Path.unlink:
            assert "damage" in life.said or "can't be read" in life.said or "set aside" in life.said
        missing = here.kept(sent) - here.recorder.ids
        if damaged is first and setting is DURABLE:
            assert not missing
        elif damage in (flip, tear):
            assert any(missing <= touched(request) for request in requests)
        assert await ended(await here.start()) == 0


@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["flipped", "missing"])
async def test_a_damaged_checkpoint_costs_no_span(damage: Any, tmp_path: Path) -> None:
    async with stage(DURABLE, tmp_path) as here:
        requests = await killed_twice(here)
        (checkpoint,) = here.store.rglob("*.state")
        damage(checkpoint)
        life, sent = await goes_on(here, requests)
        if damage is not Path.unlink:
            assert "is damaged; it is moved to" in life.said
        assert here.kept(sent) <= here.recorder.ids


async def killed_twice(here: Stage) -> list[Request]:
    """Have two lives take requests, deliver nothing and be killed; return the requests."""
    here.recorder.refusing = True
    requests: list[Request] = []
    for _ in range(2):
        life = await here.start()
        requests += here.requests(SOME)
        assert set(await here.send(life, requests[-SOME:])) == {Outcome.TAKEN}
        await ended(life, signal.SIGKILL)
    here.recorder.refusing = False
    return requests


async def goes_on(here: Stage, requests: Sequence[Request]) -> tuple[Life, Sequence[Request]]:
    """See that podtrail starts, takes and delivers; return its life, which is over, and all that was ever sent."""
    life = await here.start()
    new = here.requests(SOME)
    assert set(await here.send(life, new)) == {Outcome.TAKEN}, life.said
    closing = here.client.closing()
    await here.send_until_taken(life, closing)
    # Of a trace that began in what can't be read the rest is decided alone.
    complete = {id for request in new for trace, id in request.spans if trace.sent[0] == id}
    await here.comes(complete & here.kept(new))
    assert await ended(life) == 0, life.said
    if "undecided spans" in life.said:  # the end came before decisions that were due: the next life begins with them
        assert await ended(await here.start()) == 0
    return life, [*requests, *new, *closing]


def touched(request: Request) -> set[bytes]:
    """Return the spans of all traces that a request has some of."""
    return {id for trace, _ in request.spans for id in trace.sent}


async def test_a_second_process_on_the_same_folder_refuses_and_says_whose_it_is(tmp_path: Path) -> None:
    async with stage(DURABLE, tmp_path) as here:
        first = await here.start()
        second = await here.start()
        assert await second.end() == 1
        assert f"in use by another process (pid {first.pid})" in second.said
        requests = here.requests(SOME)
        assert set(await here.send(first, requests)) == {Outcome.TAKEN}
        await all_comes_once(here, first, requests)


async def test_nobody_else_may_read_the_store_of_a_running_podtrail(tmp_path: Path) -> None:
    async with stage(BOTH, tmp_path) as here:
        life = await here.start()
        requests = here.requests(SOME)
        assert set(await here.send(life, requests)) == {Outcome.TAKEN}
        life.tell(signal.SIGHUP)
        assert await life.says("SIGHUP: reloaded")
        found = dict(modes(here.store))
        assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
        assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
        await all_comes_once(here, life, requests)


def modes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield all below a folder and itself, with permissions."""
    for path in (folder, *folder.rglob("*")):
        yield path, stat.S_IMODE(path.stat().st_mode)
