"""What can't be taken or restored is refused: in time, with a reason, and never by half."""

import itertools
import json
import pickle
import resource
import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling.holding import held_trace
from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace

from podtrail.component import Ledger, PassingProcessor, Taken
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.checkpoint.pickling import stamp_of
from podtrail.recording import RecordingWriter
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CACHES, FAILED, SOME, Tried, sampler
from tests.pipeline.interrupted import Run, Told
from tests.sizes import large

REQUESTS = arrivals(30, seed=3)
TRIED = Tried(sampler(FAILED, SOME, **CACHES, linked_traces={"keep": True, "grace_period": "30s"}))


def taken() -> bytes:
    run = Run(TRIED.settings(), Told())
    run.feed(REQUESTS)
    return run.taken()[0]


STATE = taken()


def refused(data: bytes, tried: Tried = TRIED) -> str:
    """Check that a state is refused and the chain is as it was made; return why."""
    run, untouched = Run(tried.settings(), Told()), Run(tried.settings(), Told())
    with pytest.raises(CheckpointError) as error:
        run.checkpointers[0].restore(data)
    assert run.says() == untouched.says()
    assert run.taken() == untouched.taken()
    return str(error.value)


@settings(max_examples=large(50, 2000))
@given(st.data())
def test_damage_of_any_kind_is_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(STATE) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "zeros", "insert", "twice"]))
    match kind:
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
        refused(damaged)


@settings(max_examples=large(50, 2000))
@given(st.data())
def test_damage_that_its_checksum_does_not_tell_ends_in_a_refusal_or_in_a_state_never_in_a_crash(
    data: st.DataObject,
) -> None:
    begin = STATE.index(b"\x80\x05")
    body = bytearray(STATE[begin:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    forged = sealed(STATE[:begin] + bytes(body))
    run = Run(TRIED.settings(), Told())
    try:
        run.checkpointers[0].restore(forged)
    except CheckpointError:
        assert run.says() == Run(TRIED.settings(), Told()).says()


def with_head(**changed: Any) -> bytes:
    """Return the state with another head, and the checksum that belongs to it."""
    begin = STATE.index(b"\x80\x05")
    at = STATE.index(b"\n") + 5
    head = json.dumps({key: value for key, value in (json.loads(STATE[at:begin]) | changed).items() if value != "-"})
    return sealed(STATE[: at - 4] + len(head).to_bytes(4, "little") + head.encode() + STATE[begin:-4])


@pytest.mark.parametrize("key", ["chain", "classes", "constants", "version"])
@pytest.mark.parametrize("value", ["-", None, 7, [[]], {"": {}}, ["podtrail:__doc__.x"], ["\0"], ["os:system"]])
def test_a_forged_head_is_refused(key: str, value: Any) -> None:
    changed = {key: value} if key != "version" else {key: value, "chain": "another"}
    refused(with_head(**changed))


@pytest.mark.parametrize("head", [b"", b"7", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    at = STATE.index(b"\n") + 1
    refused(sealed(STATE[:at] + len(head).to_bytes(4, "little") + head))


@pytest.mark.parametrize(
    "name", ["podtrail.__main__:main", "podtrail.cli:main", "podtrail.pipeline.chain:ProcessorChain"]
)
def test_what_is_no_constant_is_never_taken_for_one(name: str) -> None:
    assert name in refused(with_head(constants=[name]))


def sealed(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(4, "little")


def test_nothing_but_known_classes_is_ever_made() -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return pytest.fail, ("it was called",)

    begin = STATE.index(b"\x80\x05")
    assert "is not among its classes" in refused(sealed(STATE[:begin] + pickle.dumps(Harm(), 5)))


def forged(body: bytes, *classes: type) -> bytes:
    """Return a state with this pickle in it, which says that it holds objects of these classes."""
    state = with_head(classes={f"{cls.__module__}:{cls.__qualname__}": stamp_of(cls) for cls in classes})
    return sealed(state[: state.index(b"\x80\x05")] + body)


def test_what_opens_a_file_is_never_made(tmp_path: Path) -> None:
    path = tmp_path / "written.otlp"
    harm = pickle.dumps((1,), 5)[:2] + pickle.dumps(str(path), 2)[2:-1]
    body = harm[:2] + b"cpodtrail.recording.writer\nRecordingWriter\n" + harm[2:] + b"\x85R."
    assert "RecordingWriter is nothing of a processor's" in refused(forged(body, RecordingWriter))
    assert not path.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"]r\xff\xff\xff\x94.",
        b"cbuiltins\nrange\n(J\x00\x00\x00\x00\x8a\x05\x00\x00\x00\x00\x10tR.",
        b"ccollections\ndeque\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRtR.",
        b"cfractions\nFraction\n(S'1e999999999'\ntR.",
        b"cbuiltins\nint\n(cdecimal\nDecimal\n(S'1e3000000'\ntRtR.",
        b"cbuiltins\nbytearray\n(\x8a\x05\x00\x00\x00\x00\x40tR.",
    ],
    ids=["a memo", "a range", "a queue of a range", "a fraction", "an integer of a decimal", "zeros"],
)
def test_few_bytes_that_ask_for_much_are_refused_at_once(body: bytes) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    refused(forged(b"\x80\x05" + body, range, deque, Fraction, bytearray, int, Decimal))
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_another_configuration_is_refused() -> None:
    settings = TRIED.processors["tail_sampling"]
    for changed in ({"decision_wait": "11s"}, {"policies": [SOME, FAILED]}, {"num_shards": 2, "linked_traces": {}}):
        assert "another configuration" in refused(STATE, Tried({"tail_sampling": {**settings, **changed}}))
    assert "another configuration" in refused(STATE, Tried({**TRIED.processors, "batch": {}}))


def test_another_version_of_a_class_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldTrace, "__slots__", (*HeldTrace.__slots__, "color"))
    assert "HeldTrace was another in version" in refused(STATE)


def test_a_class_that_is_gone_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(held_trace, "HeldTrace")
    assert "there is no podtrail_processors.tail_sampling.holding.held_trace:HeldTrace any more" in refused(STATE)


@dataclass
class Keeper(PassingProcessor):
    """A third party's processor that keeps something."""

    kept: Any = None
    more: list[Any] = field(default_factory=list)

    def add(self, batch: Batch, now: int) -> Taken:
        self.more.append(batch)
        return Taken()


def chain_of(kept: Any) -> ProcessorChain:
    return ProcessorChain([Keeper(kept)], Ledger())


def number() -> Callable[[], int]:
    last = 0

    def following() -> int:
        nonlocal last
        last += 1
        return last

    return following


@dataclass
class Node:
    """Something of a third party's, tied in a ring."""

    others: list["Node"] = field(default_factory=list)


def test_a_third_partys_processor_needs_to_do_nothing() -> None:
    first, second = chain_of(number()), chain_of(number())
    of_first, of_second = Checkpointer(first), Checkpointer(second)
    processor: Any = first.processors[0]
    node = Node()
    node.others.append(node)
    for kept in (node, processor.kept, processor.more, {"a": (1, {2})}):
        processor.more.append(kept)
    assert [processor.kept() for _ in range(3)] == [1, 2, 3]
    for arrival, intake in REQUESTS[:3]:
        first.add(Batch(intake.groups, arrival), arrival)

    of_second.restore(b"".join(of_first.take()))
    other: Any = second.processors[0]
    assert other.kept() == 4, "what a closure has counted goes on"
    ring, counter, own, plain, *batches = other.more
    assert ring.others == [ring]
    assert counter is other.kept
    assert own is other.more
    assert plain == {"a": (1, {2})}
    assert batches == processor.more[4:]


NOTHING = object()


def test_a_constant_stays_that_very_object_also_one_that_a_module_has_only_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = chain_of(None), chain_of(None)
    of_first, of_second = Checkpointer(first), Checkpointer(second)
    of_first.take()
    late = Node()
    monkeypatch.setattr(held_trace, "LATE", late, raising=False)
    processor: Any = first.processors[0]
    processor.more += [NOTHING, late, Node()]
    of_second.restore(b"".join(of_first.take()))
    other: Any = second.processors[0]
    assert other.more[0] is NOTHING
    assert other.more[1] is late
    assert other.more[2] is not late


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        (itertools.count(), "itertools:count"),
        ((at for at in range(3)), "builtins:generator"),
        (iter([1]), "builtins:list_iterator"),
        (threading.Lock(), "_thread:lock"),
        (memoryview(b"spans"), "builtins:memoryview"),
        (zlib.compressobj(), "Compress"),
    ],
)
def test_what_could_not_be_kept_is_found_before_anything_is_held(kept: Any, named: str) -> None:
    with pytest.raises(CheckpointError) as error:
        Checkpointer(chain_of(kept))
    assert "chain.processors[0].kept is a" in str(error.value)
    assert named in str(error.value)


@pytest.mark.parametrize("kept", [lambda: 1, partial(print, "x"), threading.Thread(), open, Keeper().add])
def test_what_comes_later_and_can_not_be_kept_is_named_with_its_place(kept: Any) -> None:
    chain = chain_of(None)
    checkpointer = Checkpointer(chain)
    processor: Any = chain.processors[0]
    processor.more.append({"deep": [kept]})
    with pytest.raises(CheckpointError, match=r"^chain\.processors\[0\]\.more can't be kept: it has a "):
        checkpointer.take()
    processor.more.clear()
    assert checkpointer.take()


def test_a_chain_that_is_very_deep_is_refused_not_crashed() -> None:
    chain = chain_of(None)
    checkpointer = Checkpointer(chain)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    processor: Any = chain.processors[0]
    processor.more.append(deep)
    with pytest.raises(CheckpointError, match="more can't be kept"):
        checkpointer.take()
    flatten(deep)


def flatten(deep: list[Any]) -> None:
    """Take it apart from outside: as a whole it would be let go of recursively."""
    parts: Sequence[Any] = deep
    while parts:
        parts = parts[0]
