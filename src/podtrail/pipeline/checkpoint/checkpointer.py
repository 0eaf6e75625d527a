"""The state of a chain as bytes and back."""

import gc
import json
import pickle
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from podtrail import __version__
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint.bounds import at_most_so_much_more
from podtrail.pipeline.checkpoint.errors import CheckpointError
from podtrail.pipeline.checkpoint.inventory import Inventory
from podtrail.pipeline.checkpoint.kinds import name_of
from podtrail.pipeline.checkpoint.pickling import ChainPickler, ChainUnpickler, Packages, stamp_of
from podtrail.pipeline.checkpoint.states import Change, Watched

_MAGIC: Final = b"podtrail checkpoint 1\n"
_LENGTH: Final = 4
_CHECKSUM: Final = 4
_LEAST_MEMORY: Final = 512 << 20
_TIMES_ITS_SIZE: Final = 64
"""What is read takes no more memory, in bytes; objects take several times what they are written in."""
_MALFORMED: Final = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading a pickle raises that is none."""


class Checkpointer:
    """Takes the state of one chain, or puts that of another of the same configuration into it.

    What a chain is made of is found when it was just made, and stays: wiring (instruments, compiled readers,
    functions) is not written but stands for itself, everything else is written as far as it has changed. The other
    chain must have been made with the same seed: what was drawn when it was made is part of its configuration.
    """

    def __init__(self, chain: ProcessorChain) -> None:
        """Know a chain that was just made, while nothing is in it.

        Raises:
            CheckpointError: it is made up in a way that can't be kept; the text says where.
        """
        found = Inventory(chain)
        self._objects = found.objects
        self._watched = {at: Watched(found.objects[at]) for at in found.state}
        self._paths = found.paths
        self._digest = found.digest()
        self._packages = Packages([type(found.objects[at]).__module__ for at in found.state])

    def take(self) -> Sequence[bytes | memoryview]:
        """Return the state, in pieces.

        Raises:
            CheckpointError: something has got in that can't be kept; the text says where and what.
        """
        changes = {at: change for at, watched in self._watched.items() if (change := watched.change())}
        body: list[bytes | memoryview] = []
        own = set(map(id, self._objects))
        constants = {name: value for name, value in self._packages.constants().items() if id(value) not in own}
        pickler = ChainPickler(body.append, [*constants.values(), *self._objects], self._packages)
        with _undisturbed():
            try:
                pickler.dump([(at, tuple(change)) for at, change in changes.items()])
            except (CheckpointError, TypeError, pickle.PicklingError, RecursionError) as error:
                raise CheckpointError(self._culprit(changes) or str(error)) from error
        classes = {name_of(cls): stamp_of(cls) for cls in pickler.classes}
        head = _head({"chain": self._digest, "classes": classes, "constants": list(constants)})
        pieces = [head, *body]
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        return [*pieces, checksum.to_bytes(_CHECKSUM, "little")]

    def restore(self, data: bytes) -> None:
        """Put a state into the chain, which must be as it was made.

        Raises:
            CheckpointError: it is damaged, or of another version or configuration; nothing was put in.
        """
        with _undisturbed(), _read_as_told(), at_most_so_much_more(_LEAST_MEMORY + _TIMES_ITS_SIZE * len(data)):
            head, begin = self._read_head(memoryview(data))
            classes = self._find_classes(head)
            has = [*map(self._packages.constant, head["constants"]), *self._objects]
            told = ChainUnpickler(data, begin, has, classes).load()
            changes = [(self._watched[at], Change(*change)) for at, change in told]
            for watched, change in changes:
                watched.apply(change)

    def _read_head(self, whole: memoryview) -> tuple[dict[str, Any], int]:
        at = len(_MAGIC) + _LENGTH
        if bytes(whole[: len(_MAGIC)]) != _MAGIC:
            raise CheckpointError("it is no checkpoint of this version's format")
        if len(whole) < at + _CHECKSUM or zlib.crc32(whole[:-_CHECKSUM]) != int.from_bytes(
            whole[-_CHECKSUM:], "little"
        ):
            raise CheckpointError("it is damaged")
        end = at + int.from_bytes(whole[len(_MAGIC) : at], "little")
        head = json.loads(bytes(whole[at:end]))
        if head["chain"] != self._digest:
            by = "" if head["version"] == __version__ else f", by version {head['version']}"
            raise CheckpointError(f"it was taken of processors of another configuration{by}")
        return head, end

    def _find_classes(self, head: dict[str, Any]) -> dict[str, type]:
        classes: dict[str, type] = {}
        for name, stamp in head["classes"].items():
            classes[name] = cls = self._packages.find(name)
            if stamp_of(cls) != stamp:
                raise CheckpointError(f"{name} was another in version {head['version']}, this is {__version__}")
        return classes

    def _culprit(self, changes: dict[int, Change]) -> str:
        """Return which object of the chain has what can't be kept; "" when it can't be told."""
        for at, change in changes.items():
            parts = {"": change.content, **{f".{name}": value for name, value in change.attributes.items()}}
            for name, part in parts.items():
                try:
                    ChainPickler(_nowhere, self._objects, self._packages).dump(part)
                except (CheckpointError, TypeError, pickle.PicklingError, RecursionError) as error:
                    return f"{self._paths[at]}{name} can't be kept: {error}"
        return ""


@contextmanager
def _read_as_told() -> Iterator[None]:
    """Have it told as such that something is not made up as a checkpoint is."""
    try:
        yield
    except _MALFORMED as error:
        raise CheckpointError(f"it can't be read: {type(error).__name__}: {error}") from error


def _head(told_of: dict[str, Any]) -> bytes:
    told = json.dumps({"version": __version__, **told_of}).encode()
    return b"".join((_MAGIC, len(told).to_bytes(_LENGTH, "little"), told))


def _nowhere(_: Any) -> None:
    return


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Have no garbage collected: millions of objects are made, none of which is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
