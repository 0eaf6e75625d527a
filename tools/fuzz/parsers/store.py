"""What a store has on disk: segments of journals, saved states, and what is in their entries.

The first byte of an input says which; what has a checksum gets it again when it is changed.
"""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from podtrail.durable.records import LoggedArrival, LoggedDeliveries
from podtrail.durable.state import PipelineStates
from podtrail.otlp.stored import MARK
from podtrail.storage import Entry, Position, SystemDisk
from podtrail.storage.layout import segment_path, state_path
from podtrail.storage.recovery import open_folder, read_segment
from podtrail.storage.segment import head_frame, write_frame
from podtrail.storage.states import save_state, saved_states
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.json import mutate as mutate_json
from tools.fuzz.parsers.requests import seeds as request_seeds
from tools.fuzz.wire import mutate_message

_SAMPLE: Final = Path(__file__).parents[3] / "tests/data/stores/1"
_MARK: Final = bytes(range(1, MARK + 1))
_SEGMENT, _BETWEEN, _STATE, _ENTRIES, _PIPELINES = range(5)
_SIZE: Final = struct.Struct("<Q")
_DISK: Final = SystemDisk()


def check(data: bytes) -> None:
    """Read it: what can't be read is told of, and costs itself alone."""
    if not data:
        return
    kind, content = data[0] % 5, data[1:]
    with tempfile.TemporaryDirectory(prefix="podtrail-fuzz-") as name:
        folder = Path(name)
        if kind == _SEGMENT:
            segment_path(folder, 1).write_bytes(content)
            _opened(folder)
        elif kind == _BETWEEN:
            _check_between(folder, content)
        elif kind == _STATE:
            state_path(folder, 1).write_bytes(content)
            _opened(folder)
            assert all(number == 1 for number, _ in saved_states(folder, _DISK))
        elif kind == _ENTRIES:
            _read(Entry(content[0] if content else 0, content[9:], 1, content[1:40]))
        else:
            save_state(folder, _DISK, 1, [content])
            ((_, state),) = saved_states(folder, _DISK)
            assert state == content, "a state is read as another"
            _read_state(state)


def _opened(folder: Path) -> list[Entry]:
    """Open a folder, twice: what was mended holds the same."""
    entries = _entries(folder, *open_folder(folder, _DISK, 0o700, fsync=False))
    again = open_folder(folder, _DISK, 0o700, fsync=False)
    assert not again.damages, "what was mended is found again"
    assert _entries(folder, *again) == entries, "what was mended holds something else"
    for entry in entries:
        _read(entry)
    return entries


def _entries(folder: Path, sizes: dict[int, int], _next: int, _damages: object) -> list[Entry]:
    found: list[tuple[Position, Entry]] = []
    for number in sizes:
        found += read_segment(folder, _DISK, number)
    assert [position for position, _ in found] == sorted({position for position, _ in found}), "not in order"
    return [entry for _, entry in found]


def _check_between(folder: Path, content: bytes) -> None:
    """What stands between two entries costs neither of them.

    Behind it is a byte that none ends with: a zero of the length behind may as well be the last of one cut off by one.
    """
    sound = Entry(7, b"", 0, b"sound")
    frame = b"".join(write_frame(sound, _MARK))
    segment_path(folder, 1).write_bytes(head_frame(_MARK) + frame + content + b"\xff" + frame)
    assert _opened(folder).count(sound) >= 2, "what stands between two entries costs one of them"


def _read(entry: Entry) -> None:
    for kind in (LoggedArrival, LoggedDeliveries):
        try:
            told = kind.read(entry)
        except ValueError:
            continue
        assert kind.read(told.entry()).entry() == told.entry(), "what was read and written again is read as another"


def _read_state(state: bytes) -> None:
    try:
        read = PipelineStates.read(state)
        written = b"".join(map(bytes, read.prepared()()))
    except ValueError:
        return
    assert PipelineStates.read(written).reached == read.reached, "a state is read as another"


def mutate(data: bytes, random: Random) -> bytes:
    """Change a frame in its own form, or the head of a state."""
    kind, content = data[:1] or b"\0", data[1:]
    if kind[0] % 5 == _PIPELINES and len(content) > _SIZE.size:
        (size,) = _SIZE.unpack_from(content)
        head = mutate_json(content[_SIZE.size : _SIZE.size + size], random)
        return kind + _SIZE.pack(len(head)) + head + content[_SIZE.size + size :]
    if kind[0] % 5 in (_SEGMENT, _BETWEEN) and random.random() < 0.5:
        note, body = random.randbytes(random.randrange(40)), mutate_message(content[4:200], random)
        frame = b"".join(write_frame(Entry(random.choice((0, 1, 2, 127)), body, random.getrandbits(63), note), _MARK))
        at = random.randrange(len(content) + 1)
        return kind + content[:at] + frame + content[at + random.choice((0, len(frame), 9)) :]
    at = random.randrange(len(content) + 1)
    return kind + content[:at] + random.randbytes(random.randrange(9)) + content[at + random.randrange(9) :]


def seeds() -> Iterator[bytes]:
    """Yield beginnings of a stored sample, entries of each kind, and the state of a store without spans."""
    for path in sorted(_SAMPLE.glob("0*")):
        content = path.read_bytes()[:3000]
        yield bytes([_STATE if path.suffix == ".state" else _SEGMENT]) + content
    bodies = [*request_seeds()]
    deliveries = LoggedDeliveries("traces", "otlp", 1, [bytes(28)]).entry()
    frames = [Entry(0, body, 5, (7).to_bytes(8, "little") + b"otlp") for body in bodies] + [deliveries]
    written = b"".join(b"".join(write_frame(entry, _MARK)) for entry in frames)
    yield bytes([_SEGMENT]) + head_frame(_MARK) + written
    yield bytes([_BETWEEN]) + written
    yield bytes([_ENTRIES, 1]) + deliveries.note
    head = b'{"format": 1, "generation": {"pipelines": {}, "processors": {}, "gates": []}, "reached": {"traces": 1}, '
    head += b'"sections": [["recent", 0], [{"chain": "traces"}, 2]]}'
    yield bytes([_PIPELINES]) + _SIZE.pack(len(head)) + head + b"ab"


PARSER = Parser(check, seeds, mutate, words=(_MARK, b"podtrail state 1\n", b"\0\0\0\x10", b"recent", b"owed"))
