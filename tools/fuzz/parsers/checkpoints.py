"""Checkpoints of chains and of whole stores, forged with checksums that are right: they are refused or read.

The first byte of an input says which; of a chain's the second says which section the rest is put in place of. Nothing
may reach out of the process.
"""

import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from struct import Struct
from typing import Any, Final

from podtrail.config import ConfigError
from podtrail.durable.generation import Generation
from podtrail.durable.recent import RecentRequests
from podtrail.durable.state import PipelineStates
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError
from podtrail.pipeline.checkpoint.encoding import pack
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer, read_config
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.json import mutate as mutate_json

_CHAIN, _LINKED, _STORE, _GENERATION = range(4)
_MAGIC: Final = b"podtrail checkpoint 2\n"
_PREFIX: Final = Struct("<II")
_START: Final = 1_790_000_000_000_000_000
_SECOND: Final = 10**9
_HARM: Final = ("os.", "subprocess.", "shutil.", "socket.", "ctypes.", "pty.", "webbrowser.", "signal.", "pickle.")
_HARMLESS: Final = ("os.listdir", "os.scandir")
"""What Python's import does."""
_LETTERS: Final = b"EN?bhiqIdBS=TLMU"


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
def _taken(kind: int, traces: int) -> Mapping[str, tuple[int, int, bytes]]:
    """Return version, spans held and content of each section of a real checkpoint."""
    chain = _chain(kind)
    for number in range(traces):
        now = _START + number * 6 * _SECOND
        chain.advance(now, 1000)
        chain.add(_trace(number + 1), now)
    sections = Checkpointer(chain).take().sections
    return {name: (version, held, b"".join(pack(state))) for name, version, held, state in sections}


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
    sections = dict(_taken(kind, 4))
    name = [*sections][content[0] % len(sections) if content else 0]
    version, held, _ = sections[name]
    body = content[1:]
    sections[name] = version, held, body
    watch = _watch()
    watch.looks, watch.seen = True, ""
    told: Any = ()
    try:
        told = Checkpointer(_chain(kind)).restore(_sealed(sections))
    except CheckpointError as error:
        told = str(error)
    finally:
        watch.looks = False
    assert not watch.seen, f"a checkpoint reaches out: {watch.seen}"
    whole = [_taken(kind, at)[name][2] for at in range(5)]
    if any(one != body and one.startswith(body) for one in whole):
        assert told, "what is cut off is taken for whole"


def _sealed(sections: Mapping[str, tuple[int, int, bytes]]) -> bytes:
    """Return a checkpoint of these sections whose checksums are right."""
    heads = [(name, version, held, len(body), zlib.crc32(body)) for name, (version, held, body) in sections.items()]
    head = b"".join(pack(("0.1", tuple(heads))))
    bodies = b"".join(body for _, _, body in sections.values())
    return _MAGIC + _PREFIX.pack(len(head), zlib.crc32(head)) + head + bodies


def _check_store(content: bytes) -> None:
    try:
        state = PipelineStates.read(content)
        RecentRequests().unpack(state.recent)
    except ValueError:
        return
    again = PipelineStates.read(b"".join(map(bytes, state.prepared()())))
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
    """Change the head as JSON, or a section by its letters and bytes."""
    kind, content = data[:1] or b"\0", data[1:]
    if kind[0] % 4 == _GENERATION:
        return kind + mutate_json(content, random)
    if kind[0] % 4 == _STORE:
        size = int.from_bytes(content[:8], "little")
        head = mutate_json(content[8 : 8 + size], random)
        return kind + len(head).to_bytes(8, "little") + head + content[8 + size :]
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        at, other = (random.randrange(len(changed) + 1) for _ in range(2))
        match random.randrange(5):
            case 0:
                del changed[at : at + random.choice((1, 2, 8))]
            case 1:
                changed[at:at] = changed[other : other + random.choice((1, 4, 16))]
            case 2:
                changed[at : at + 1] = bytes([random.choice(_LETTERS)])
            case 3:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case _:
                del changed[at:]
    return kind + bytes(changed)


def seeds() -> Iterator[bytes]:
    """Yield checkpoints of chains that hold nothing, something and something else, of stores, and generations."""
    for kind in _PROCESSORS:
        for traces in range(5):
            for at, (_, _, body) in enumerate(_taken(kind, traces).values()):
                yield bytes([kind, at]) + body
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
        state = PipelineStates(generation, {"traces": _START}, {"traces": b"chain"}, owed, b"")
        yield bytes([_STORE]) + b"".join(map(bytes, state.prepared()()))


_WORDS: Final = [bytes([letter]) for letter in _LETTERS]
PARSER = Parser(check, seeds, mutate, words=_WORDS, largest=16_384)
