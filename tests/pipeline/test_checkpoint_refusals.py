"""What can't be taken or restored is refused with a reason, and hostile bytes cost no more than their size."""

import struct
import tracemalloc
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.component import Ledger, PassingProcessor, Taken
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import ChainState, Checkpointer, CheckpointError
from podtrail.pipeline.checkpoint.encoding import pack, unpack
from podtrail.state import StateError
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CACHES, FAILED, NEW, SOME, TRIES, Tried, sampler
from tests.pipeline.interrupted import Run, Told
from tests.sizes import large

REQUESTS = arrivals(30, seed=3)
TRIED = Tried(
    {
        "scheduling_metrics": {},
        **sampler(FAILED, SOME, NEW, TRIES, **CACHES, linked_traces={"keep": True, "grace_period": "30s"}),
        "link_stitching": {"reorder_wait": "2s"},
    }
)
PREFIX = struct.Struct("<II")
MAGIC = b"podtrail checkpoint 2\n"


def fed() -> Run:
    run = Run(TRIED.settings(), Told())
    run.feed(REQUESTS)
    return run


TAKEN: ChainState = fed().checkpointers[0].take()
STATE = b"".join(TAKEN.pieces())
SECTIONS = {name: (version, held, b"".join(pack(state))) for name, version, held, state in TAKEN.sections}


def sealed(**changed: Any) -> bytes:
    """Return the checkpoint with other versions, spans held or contents of sections, and checksums that are right."""
    heads, body = [], b""
    for name, (version, held, content) in SECTIONS.items():
        version, held, content = changed.get(name, (version, held, content))
        heads.append((name, version, held, len(content), zlib.crc32(content)))
        body += content
    head = b"".join(pack(("0.1", tuple(heads))))
    return MAGIC + PREFIX.pack(len(head), zlib.crc32(head)) + head + body


def refused(data: bytes, tried: Tried = TRIED) -> str:
    with pytest.raises(CheckpointError) as error:
        Run(tried.settings(), Told()).checkpointers[0].restore(data)
    return str(error.value)


@settings(max_examples=large(50, 2000))
@given(st.data())
def test_damage_of_any_kind_is_refused_or_named(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(STATE) - 1))
    match data.draw(st.sampled_from(["cut", "flip", "zeros", "insert", "twice"])):
        case "cut":
            damaged = STATE[:at]
        case "flip":
            damaged = STATE[:at] + bytes([STATE[at] ^ data.draw(st.integers(1, 255))]) + STATE[at + 1 :]
        case "zeros":
            damaged = STATE[:at] + bytes(len(STATE) - at)
        case "insert":
            damaged = STATE[:at] + data.draw(st.binary(min_size=1)) + STATE[at:]
        case _:
            damaged = STATE + STATE
    if damaged != STATE:
        with suppress(CheckpointError):
            assert Run(TRIED.settings(), Told()).checkpointers[0].restore(damaged)


@settings(max_examples=large(60, 2000))
@given(st.data())
def test_damage_that_no_checksum_tells_ends_in_a_refusal_or_in_a_state_never_in_a_crash(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*SECTIONS]))
    version, held, content = SECTIONS[name]
    body = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CheckpointError):
        Run(TRIED.settings(), Told()).checkpointers[0].restore(sealed(**{name: (version, held, bytes(body))}))


def test_a_checkpoint_of_the_pickled_format_is_refused_by_its_name() -> None:
    assert "a checkpoint of podtrail 0.1" in refused(b"podtrail checkpoint 1\n" + b"\0\0\0\0" + b"\x80\x05N.")
    assert "no checkpoint of this version's format" in refused(b"podtrail checkpoint 9\n" + STATE[22:])


def test_other_processors_are_refused() -> None:
    assert "it is of the processors" in refused(STATE, Tried({**TRIED.processors, "batch": {}}))
    shards = {**TRIED.processors["tail_sampling"], "num_shards": 2, "linked_traces": {}}
    assert "tail_sampling" in refused(STATE, Tried({**TRIED.processors, "tail_sampling": shards}))


@pytest.mark.parametrize("how", ["version", "content"])
def test_what_can_not_be_read_begins_empty_or_has_the_log_replayed_if_spans_are_held_there(how: str) -> None:
    def with_unreadable(name: str, held: int) -> bytes:
        version, _, content = SECTIONS[name]
        return sealed(**{name: (99, held, content) if how == "version" else (version, held, b"".join(pack(("?",))))})

    assert "tail_sampling (written by version 0.1): it" in refused(with_unreadable("tail_sampling", 5))
    run, whole = Run(TRIED.settings(), Told(), now=REQUESTS[-1][0]), fed()
    (problem,) = run.checkpointers[0].restore(with_unreadable("scheduling_metrics", 0))
    assert problem.startswith("scheduling_metrics: it")
    told, expected = ({k: v for k, v in r.says()[0].items() if "scheduling" not in k} for r in (run, whole))
    assert told == expected, "the other processors are as they were"
    assert run.chains[0].held() == whole.chains[0].held() > 0


def test_a_policy_that_can_not_be_restored_begins_empty_alone() -> None:
    version, held, content = SECTIONS["tail_sampling"]
    state = list(unpack(content))
    policies, forgetting = state[-1]
    state[-1] = (
        tuple((at, name, kind, 99 if name == "new" else v, s) for at, name, kind, v, s in policies),
        forgetting,
    )
    run = Run(TRIED.settings(), Told())
    changed = sealed(tail_sampling=(version, held, b"".join(pack(tuple(state)))))
    assert run.checkpointers[0].restore(changed) == ["tail_sampling: policy new: its version is 99, known are 1"]
    assert run.chains[0].held() == fed().chains[0].held()


LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
)
PLAIN = st.recursive(
    LEAF, lambda of: st.lists(of).map(tuple) | st.dictionaries(st.text(), of) | st.lists(st.tuples(of, of)).map(tuple)
)


@settings(max_examples=large(100, 5000))
@given(PLAIN)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    again = unpack(b"".join(pack(value)))
    assert (again, repr(again)) == (value, repr(value))


def column(letter: str, *rest: bytes) -> bytes:
    return letter.encode() + b"".join(rest)


NUMBER = column("q", struct.pack("<q", 1 << 60))
DEEP = b"".join(column("L", b"b\x01") for _ in range(100_000)) + b"N\0"
SHARED = b"".join(column("=", struct.pack("<I", 1), column("L", b"b\x40")) for _ in range(30)) + b"N\0"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"x", b"N", b"E", b"T\0\0\0\0", b"U\x02\x05", b"Bb\x03" + bytes(8)),
        column("L", NUMBER, b"N"),
        column("T", struct.pack("<I", 1 << 31)),
        column("=", struct.pack("<I", 1 << 31), b"Bb\x01"),
        column("B", NUMBER, struct.pack("<Q", 1 << 60)),
        column(
            "L", column("I", column("B", column("i", struct.pack("<i", 5_000)), struct.pack("<Q", 5_000), bytes(5_000)))
        ),
        *(DEEP, SHARED),
        b"Lb\x7f" + b"I" + b"Bb" + bytes([1]) * 127 + struct.pack("<Q", 127) + b"\x01" * 126,
    ],
    ids=range(15),
)
def test_few_bytes_that_ask_for_much_are_refused_at_once(content: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(StateError):
        unpack(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 * len(content) + (1 << 20)
    version, _, _ = SECTIONS["tail_sampling"]
    assert "tail_sampling" in refused(sealed(tail_sampling=(version, 1, content)))


@dataclass
class Keeper(PassingProcessor):
    """A third party's processor that keeps something."""

    kept: list[Any] = field(default_factory=list)
    state_version = 2

    def add(self, batch: Batch, now: int) -> Taken:
        self.kept.append(now)
        return Taken()

    def save_state(self) -> Any:
        return list(self.kept)

    def restore_state(self, version: int, state: Sequence[Any]) -> None:
        self.kept = [*state] if version == self.state_version else [one * 10 for one in state]
        if "fail" in state:
            raise KeyError("fail")


class Holder(PassingProcessor):
    """One that may hold spans and can't save them."""

    passes_on = False

    def add(self, batch: Batch, now: int) -> Taken:
        return Taken((batch,))


def keeper_of(processor: Any) -> Checkpointer:
    return Checkpointer(ProcessorChain([processor], Ledger(), ids=["kept"]))


def test_a_third_partys_processor_saves_its_state_with_a_version() -> None:
    old, new = Keeper([1, 2]), Keeper()
    old.state_version = 1
    assert not keeper_of(new).restore(b"".join(keeper_of(old).take().pieces()))
    assert new.kept == [10, 20], "what an earlier version saved is read by the present one"
    failing = b"".join(keeper_of(Keeper(["fail"])).take().pieces())
    assert keeper_of(Keeper()).restore(failing) == ["kept: restore_state failed: KeyError: 'fail'"]


@pytest.mark.parametrize("kept", [object(), {1: 2}, {"deep": [{1}]}, lambda: 1, 1 << 9000])
def test_what_is_no_plain_value_is_refused_with_its_processor(kept: Any) -> None:
    with pytest.raises(CheckpointError, match=r"^kept has a state that can't be written: "):
        keeper_of(Keeper([kept])).take().pieces()


def test_what_is_very_deep_is_refused_not_crashed() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(CheckpointError, match="too deep"):
        keeper_of(Keeper(deep)).take().pieces()
    while deep:  # taken apart from outside: as a whole it would be let go of recursively
        deep = deep[0]


def test_one_that_may_hold_spans_and_saves_nothing_is_refused_before_a_checkpoint() -> None:
    with pytest.raises(CheckpointError, match="kept holds spans and has neither save_state nor restore_state"):
        keeper_of(Holder()).take()
