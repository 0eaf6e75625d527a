"""The state of a chain as bytes and back: a section for the chain itself, one for each processor.

    podtrail checkpoint 2
    head size and checksum (4 bytes each)
    head            for each section: name, version, spans held, size, checksum
    sections        plain values, see `encoding`

A section that can't be read begins empty, unless it holds spans: then the whole checkpoint is refused, and the log is
replayed instead.
"""

import gc
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final, NamedTuple

from podtrail import __version__
from podtrail.component import PassesOn
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint.encoding import pack, unpack
from podtrail.pipeline.checkpoint.errors import CheckpointError
from podtrail.pipeline.sending.stored_batch import parts, read_batch, write_batch
from podtrail.state import KeepsState, PartlyRestored, StateError, StateShape
from podtrail.storage import Entry

_MAGIC: Final = b"podtrail checkpoint 2\n"
_PICKLED: Final = b"podtrail checkpoint 1\n"
_PREFIX: Final = Struct("<II")
_CHAIN: Final = "chain"
_CHAIN_VERSION: Final = 1


class _Section(NamedTuple):
    name: str
    version: int
    held: int
    """Spans inside: without the section they would be lost."""
    size: int
    checksum: int


class _Head(NamedTuple):
    release: str
    sections: tuple[_Section, ...]


_SavedEntry = tuple[int, bytes, int, bytes]


class _SavedBatch(NamedTuple):
    arrived: int
    entries: tuple[_SavedEntry, ...]


class _SavedChain(NamedTuple):
    waiting: tuple[tuple[_SavedBatch, ...], ...]
    outbox: tuple[_SavedBatch, ...]


_HEAD: Final = StateShape[_Head](_Head)
_SAVED_CHAIN: Final = StateShape[_SavedChain](_SavedChain)


class ChainState(NamedTuple):
    """A chain at one moment, not written yet: that can be done later, and in a thread."""

    sections: Sequence[tuple[str, int, int, Any]]
    """Name, version, spans held and state of each."""

    def pieces(self) -> Sequence[bytes]:
        """Return it in bytes.

        Raises:
            CheckpointError: a processor has saved what is no plain value.
        """
        heads: list[_Section] = []
        body: list[bytes] = []
        with _undisturbed():
            for name, version, held, state in self.sections:
                try:
                    packed = pack(state)
                except StateError as error:
                    raise CheckpointError(f"{name} has a state that can't be written: {error}") from error
                checksum = 0
                for piece in packed:
                    checksum = zlib.crc32(piece, checksum)
                heads.append(_Section(name, version, held, sum(map(len, packed)), checksum))
                body += packed
        head = b"".join(pack(_Head(__version__, tuple(heads))))
        return [_MAGIC, _PREFIX.pack(len(head), zlib.crc32(head)), head, *body]


class Checkpointer:
    """Takes the state of one chain, or puts that of another of the same configuration into it."""

    def __init__(self, chain: ProcessorChain) -> None:
        """Know a chain."""
        self._chain = chain
        self._keepers = [p if isinstance(p, KeepsState) else None for p in chain.processors]

    def take(self) -> ChainState:
        """Return the state as it is now.

        Raises:
            CheckpointError: a processor holds spans and can't save them; it is named.
        """
        with _undisturbed():
            sections = [(_CHAIN, _CHAIN_VERSION, _between(self._chain), _saved_chain(self._chain))]
            for name, processor, keeper in zip(self._chain.ids, self._chain.processors, self._keepers, strict=True):
                if keeper is not None:
                    try:
                        sections.append((name, keeper.state_version, processor.held(), keeper.save_state()))
                    except StateError as error:
                        raise CheckpointError(f"{name}: {error}") from error
                elif not (isinstance(processor, PassesOn) and processor.passes_on):
                    raise CheckpointError(f"{name} holds spans and has neither save_state nor restore_state")
        return ChainState(sections)

    def restore(self, data: bytes) -> Sequence[str]:
        """Put a state into the chain, which must be as it was made.

        Returns:
            What could not be restored and begins empty, with the reason. No spans were held there.

        Raises:
            CheckpointError: it is damaged, of another format or of other processors. The chain must not be used then.
        """
        problems: list[str] = []
        keepers = {
            name: keeper for name, keeper in zip(self._chain.ids, self._keepers, strict=True) if keeper is not None
        }
        with _undisturbed():
            head, at = _read_head(data)
            names = [section.name for section in head.sections]
            if names != [_CHAIN, *keepers]:
                raise CheckpointError(
                    f"it is of the processors {', '.join(names[1:])}, not of {', '.join(keepers)} "
                    f"(written by version {head.release})"
                )
            for section in head.sections:
                content = data[at : at + section.size]
                at += section.size
                try:
                    self._restore(section, content, keepers)
                except PartlyRestored as partly:
                    problems += [f"{section.name}: {problem}" for problem in partly.problems]
                except StateError as error:
                    if section.held or section.name == _CHAIN:
                        raise CheckpointError(f"{section.name} (written by version {head.release}): {error}") from error
                    problems.append(f"{section.name}: {error}")
        return problems

    def _restore(self, section: _Section, content: bytes, keepers: Mapping[str, KeepsState]) -> None:
        if len(content) != section.size or zlib.crc32(content) != section.checksum:
            raise StateError("it is damaged")
        state = unpack(content)
        if section.name == _CHAIN:
            _restore_chain(self._chain, section.version, state)
            return
        try:
            keepers[section.name].restore_state(section.version, state)
        except StateError:
            raise
        except Exception as error:  # third parties' code: whatever it is, it is reported
            raise StateError(f"restore_state failed: {type(error).__name__}: {error}") from error


def _read_head(data: bytes) -> tuple[_Head, int]:
    """Return the head of a state, and where its sections begin."""
    if data.startswith(_PICKLED):
        raise CheckpointError("it is a checkpoint of podtrail 0.1, in a format that is no longer read")
    at = len(_MAGIC) + _PREFIX.size
    if not data.startswith(_MAGIC) or len(data) < at:
        raise CheckpointError("it is no checkpoint of this version's format")
    size, checksum = _PREFIX.unpack_from(data, len(_MAGIC))
    head = data[at : at + size]
    if len(head) != size or zlib.crc32(head) != checksum:
        raise CheckpointError("it is damaged")
    try:
        found = _HEAD.read(unpack(head))
    except StateError as error:
        raise CheckpointError(str(error)) from error
    end = at + size
    if any(section.size < 0 for section in found.sections) or end + sum(s.size for s in found.sections) != len(data):
        raise CheckpointError("it is damaged")
    return found, end


def _between(chain: ProcessorChain) -> int:
    """Return how many spans are between the processors of a chain, and at its end."""
    return chain.held() - sum(processor.held() for processor in chain.processors)


def _saved_chain(chain: ProcessorChain) -> _SavedChain:
    return _SavedChain(
        tuple(tuple(map(_saved_batch, waiting)) for waiting in chain.waiting), tuple(map(_saved_batch, chain.outbox))
    )


def _restore_chain(chain: ProcessorChain, version: int, state: Any) -> None:
    if version != _CHAIN_VERSION:
        raise StateError(f"its version is {version}, known is {_CHAIN_VERSION}")
    saved = _SAVED_CHAIN.read(state)
    if len(saved.waiting) != len(chain.waiting):
        raise StateError("it is of another number of processors")
    waiting = [[*map(_read_batch, batches)] for batches in saved.waiting]
    chain.outbox.extend([*map(_read_batch, saved.outbox)])
    for queue, batches in zip(chain.waiting, waiting, strict=True):
        queue.extend(batches)


def _saved_batch(batch: Batch) -> _SavedBatch:
    entries = [write_batch(0, part, 0) for part in parts(batch)]
    return _SavedBatch(batch.arrived, tuple((one.kind, one.body, one.arrival, one.note) for one in entries))


def _read_batch(saved: _SavedBatch) -> Batch:
    try:
        read = [read_batch(Entry(*entry)) for entry in saved.entries]
    except (ValueError, LookupError, TypeError) as error:
        raise StateError(f"it is damaged: a batch: {error}") from error
    groups = [group for batch in read for group in batch.groups]
    return Batch(groups, saved.arrived, [verdict for batch in read for verdict in batch.verdicts])


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Have no garbage collected: many objects are made, none of which is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
