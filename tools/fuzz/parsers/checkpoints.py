"""Checkpoints of chains and of whole stores, forged with checksums that are right: they are refused or read.

The first byte of an input says which; of a chain's the head is given as it would be here: its digest, its version, the
stamps of its classes. What is cut off must leave the chain as it was, and nothing may reach out of the process.
"""

import json
import pickle
import pickletools
import sys
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, Final

from podtrail.config import ConfigError
from podtrail.durable.generation import Generation
from podtrail.durable.recent import RecentRequests
from podtrail.durable.state import PipelineStates
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer, read_config
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.json import mutate as mutate_json

_CHAIN, _LINKED, _STORE, _GENERATION = range(4)
_HEAD: Final = 2
"""Bytes that say how long the head is."""
_MAGIC: Final = b"podtrail checkpoint 1\n"
_START: Final = 1_790_000_000_000_000_000
_SECOND: Final = 10**9
_HARM: Final = ("os.", "subprocess.", "shutil.", "socket.", "ctypes.", "pty.", "webbrowser.", "signal.")
_HARMLESS: Final = ("os.listdir", "os.scandir")
"""What Python's import does."""
_EVIL: Final = (
    b"cos\nsystem\n(S'true'\ntR",
    b"cbuiltins\neval\n(S'1'\ntR",
    b"cbuiltins\nrange\n(K\x00\x8a\x05\x00\x00\x00\x00\x10tR",
    b"cfractions\nFraction\n(S'1e999999999'\ntR",
    b"cbuiltins\nbytearray\n(\x8a\x05\x00\x00\x00\x00\x10tR",
    b"ccollections\ndeque\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRtR",
    b"cpodtrail.recording.writer\nRecordingWriter\n(S'/tmp/podtrail-fuzz-must-not-be'\ntR",
    *(b"h%c)R" % at for at in range(0, 250, 7)),
    *(b"h%c(K\x01tR" % at for at in range(0, 250, 11)),
    *(b"h%c}S'a'\nK\x01sb" % at for at in range(0, 250, 13)),
)
"""Pickled calls that must not be made, and calls and changes of what a chain is made of."""
_EVIL_CLASSES: Final = (
    "builtins:range",
    "builtins:bytearray",
    "fractions:Fraction",
    "collections:deque",
    "podtrail.recording.writer:RecordingWriter",
    "os:system",
    "podtrail_processors.tail_sampling.holding.held_trace:HeldTrace",
)


class _Watch:
    """Sees what reaches out of the process while a checkpoint is read."""

    def __init__(self) -> None:
        self.looks = False
        self.seen = ""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.looks:
            return
        writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+")
        if writes or (event.startswith(_HARM) and event not in _HARMLESS):
            self.seen = f"{event} {arguments!r}"


@cache
def _watch() -> _Watch:
    return _Watch()


def _sampler(**more: Any) -> dict[str, Any]:
    failed = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
    caches = {"decision_cache": {"sampled_cache_size": 4, "non_sampled_cache_size": 4}}
    return {"decision_wait": "10s", "num_traces": 20, "policies": [failed], **caches, **more}


_PROCESSORS: Final[dict[int, dict[str, Any]]] = {
    _CHAIN: {"tail_sampling": _sampler()},
    _LINKED: {
        "tail_sampling": _sampler(linked_traces={"keep": True, "grace_period": "30s"}),
        "link_stitching": {"reorder_wait": "2s"},
    },
}


def _chain(kind: int) -> ProcessorChain:
    processors = _PROCESSORS[kind]
    pipeline = {"receivers": ["otlp"], "processors": [*processors], "exporters": ["debug"]}
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": None}}},
        "processors": processors,
        "exporters": {"debug": None},
        "service": {"pipelines": {"traces": pipeline}},
    }
    (chain,) = Replayer(read_settings(read_config(config)), lambda *_: None).chains.values()
    return chain


def _trace(number: int) -> Batch:
    id = number.to_bytes(16, "big")
    span = encode_span(trace_id=id, span_id=id[8:], name="n", start=_START, end=_START + 1)
    return Batch([Group(resource_header({}), scope_header("s"), id, frame([span]), 1)], _START)


@cache
def _taken(kind: int, traces: int) -> tuple[dict[str, Any], bytes]:
    """Return the head and the body of a real checkpoint."""
    chain = _chain(kind)
    checkpointer = Checkpointer(chain)
    for number in range(traces):
        now = _START + number * 6 * _SECOND
        chain.advance(now, 1000)
        chain.add(_trace(number + 1), now)
    state = b"".join(map(bytes, checkpointer.take()))
    begin = len(_MAGIC) + 4
    end = begin + int.from_bytes(state[len(_MAGIC) : begin], "little")
    return json.loads(state[begin:end]), state[end:-4]


@cache
def _stamps() -> dict[str, str]:
    return {name: stamp for kind in _PROCESSORS for name, stamp in _taken(kind, 4)[0]["classes"].items()}


def check(data: bytes) -> None:
    """Read it: it is refused with the error that is meant for that, or read, and harms nothing."""
    if not data:
        return
    kind, content = data[0] % 4, data[1:]
    if kind in _PROCESSORS:
        _check_chain(kind, content)
    elif kind == _STORE:
        _check_store(content)
    else:
        _check_generation(content)


def _check_chain(kind: int, content: bytes) -> None:
    checkpointer = Checkpointer(_chain(kind))
    body = content[_HEAD + int.from_bytes(content[:_HEAD], "little") :]
    cut_off = any(whole != body and whole.startswith(body) for whole in (_taken(kind, at)[1] for at in range(5)))
    refused = False
    watch = _watch()
    watch.looks, watch.seen = True, ""
    try:
        checkpointer.restore(_sealed(kind, content))
    except CheckpointError:
        refused = True
    finally:
        watch.looks = False
    assert not watch.seen, f"a checkpoint reaches out: {watch.seen}"
    if cut_off:
        assert refused, "what is cut off is taken for whole"
        assert checkpointer.take()[1:] == Checkpointer(_chain(kind)).take()[1:], "what is refused changes the chain"


def _sealed(kind: int, content: bytes) -> bytes:
    """Return a checkpoint with this head and body whose digest, stamps and checksum are right."""
    size = int.from_bytes(content[:_HEAD], "little")
    head, body = content[_HEAD : _HEAD + size], content[_HEAD + size :]
    try:
        told = json.loads(head)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict):
        real = _taken(kind, 4)[0]
        told |= {"chain": real["chain"], "version": real["version"]}
        if told.get("constants") is True:
            told["constants"] = real["constants"]
        if isinstance(classes := told.get("classes"), list):
            told["classes"] = {str(name): _stamp(str(name)) for name in classes}
        head = json.dumps(told).encode()
    whole = _MAGIC + len(head).to_bytes(4, "little") + head + body
    return whole + zlib.crc32(whole).to_bytes(4, "little")


def _stamp(name: str) -> str:
    from podtrail.pipeline.checkpoint.pickling import Packages, stamp_of

    if name not in _stamps():
        try:
            return stamp_of(Packages([]).find(name))
        except (CheckpointError, ValueError):
            return ""
    return _stamps()[name]


def _check_store(content: bytes) -> None:
    try:
        state = PipelineStates.read(content)
        RecentRequests().unpack(state.recent)
    except ValueError:
        return
    again = PipelineStates.read(b"".join(map(bytes, state.pieces())))
    assert (again.reached, again.recent) == (state.reached, state.recent), "a state is read as another"
    _use(state.generation)


def _check_generation(content: bytes) -> None:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return
    try:
        generation = Generation.read(told)
    except ValueError:
        return
    _use(generation)


def _use(generation: Generation) -> None:
    try:
        settings = generation.settings()
    except (ConfigError, ValueError):
        return
    assert len(settings.pipelines) == len(generation.pipelines)


def mutate(data: bytes, random: Random) -> bytes:
    """Change the head as JSON, or the body by the steps of a pickle."""
    kind, content = data[:1] or b"\0", data[1:]
    if kind[0] % 4 == _GENERATION:
        return kind + mutate_json(content, random)
    if kind[0] % 4 == _STORE:
        size = int.from_bytes(content[:8], "little")
        head = mutate_json(content[8 : 8 + size], random)
        return kind + len(head).to_bytes(8, "little") + head + content[8 + size :]
    size = int.from_bytes(content[:_HEAD], "little")
    head, body = content[_HEAD : _HEAD + size], content[_HEAD + size :]
    if random.random() < 0.2:
        head = _with_class(head, random) if random.random() < 0.6 else mutate_json(head, random)
    else:
        body = _mutated_pickle(body, random)
    return kind + len(head).to_bytes(_HEAD, "little", signed=False)[:_HEAD] + head + body


def _with_class(head: bytes, random: Random) -> bytes:
    try:
        told = json.loads(head)
        return json.dumps(told | {"classes": [*told["classes"], random.choice(_EVIL_CLASSES)]}).encode()
    except (ValueError, TypeError, LookupError, RecursionError):
        return head


def _mutated_pickle(body: bytes, random: Random) -> bytes:
    steps = _steps(body)
    at, other = random.randrange(len(steps) + 1), random.randrange(len(steps) + 1)
    some = steps[at : at + random.choice((1, 1, 2, 5))]
    match random.randrange(7):
        case 0:
            steps[at : at + len(some)] = []
        case 1:
            steps[other:other] = some
        case 2:
            random.shuffle(some)
            steps[at : at + len(some)] = some
        case 3:
            steps.insert(at, random.choice(_EVIL))
        case 4:
            steps[at : at + 1] = [random.choice(steps or [b""])]
        case 5:
            changed = bytearray(b"".join(some))
            for _ in range(min(len(changed), 2)):
                changed[random.randrange(len(changed))] = random.randrange(256)
            steps[at : at + len(some)] = [bytes(changed)]
        case _:
            steps = steps[:at]
    return b"".join(steps)


def _steps(body: bytes) -> list[bytes]:
    """Return the opcodes of a pickle with what belongs to them, frames left out; what is none as it is."""
    found: list[bytes] = []
    begin: int | None = None
    name = ""
    try:
        for opcode, _, at in pickletools.genops(body):
            if begin is not None and at is not None and name != "FRAME":
                found.append(body[begin:at])
            begin, name = at, opcode.name
    except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError, pickle.UnpicklingError):
        pass
    return [*found, body[begin or 0 :]]


def seeds() -> Iterator[bytes]:
    """Yield checkpoints of chains that hold nothing, something and something else, of stores, and generations."""
    for kind in _PROCESSORS:
        for traces in range(5):
            head, body = _taken(kind, traces)
            yield bytes([kind]) + _written({"classes": [*head["classes"]], "constants": True}) + body
            yield bytes([kind]) + _written({"classes": [*head["classes"]], "constants": True}) + b"".join(_steps(body))
    for name, evil in zip(_EVIL_CLASSES * 9, _EVIL, strict=False):
        yield bytes([_CHAIN]) + _written({"classes": [name], "constants": True}) + b"\x80\x05" + evil + b"."
    settings = read_settings(
        read_config(
            {
                "receivers": {"otlp": {"protocols": {"grpc": None}}},
                "processors": _PROCESSORS[_LINKED],
                "exporters": {"debug": None},
                "service": {
                    "pipelines": {
                        "traces": {
                            "receivers": ["otlp"],
                            "processors": [*_PROCESSORS[_LINKED]],
                            "exporters": ["debug"],
                        }
                    }
                },
            }
        )
    )
    generation = Generation.of(settings, settings.pipelines)
    told = {
        "pipelines": generation.pipelines,
        "processors": generation.processors,
        "gates": [*generation.gates],
    }
    yield bytes([_GENERATION]) + json.dumps(told).encode()
    yield bytes([_GENERATION]) + b'{"pipelines": {}, "processors": {}, "gates": []}'
    for owed in ([], [(("traces", "debug"), _trace(7))]):
        state = PipelineStates(generation, {"traces": _START}, {"traces": [b"chain"]}, owed, b"")
        yield bytes([_STORE]) + b"".join(map(bytes, state.pieces()))


def _written(head: dict[str, Any]) -> bytes:
    raw = json.dumps(head).encode()
    return len(raw).to_bytes(_HEAD, "little") + raw


_WORDS: Sequence[bytes] = (b"\x80\x05", b"\x94", b"R.", b"b.", b"builtins:", b"classes", b"constants", *_EVIL[:7])
PARSER = Parser(check, seeds, mutate, words=_WORDS)
