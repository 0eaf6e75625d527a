"""A layer between podtrail and the system: it ends the process by SIGKILL at one of the things it does to its store.

It stands in `os`, so that nothing passes it by, whatever part of podtrail it comes from. Imported in the process that
is to die, and nowhere else.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

ANY = "any"
"""As an operation of an order: the nth of whatever kind."""
_REAL_OPEN = os.open
_REAL_WRITE = os.write
_REAL_LINK = os.link


class Death:
    """Comes at the nth operation of a kind, counted from the start or from when SIGUSR1 tells."""

    def __init__(self, order: dict[str, Any], store: Path) -> None:
        self._operation: str = order["operation"]
        self._nth: int = order["nth"]
        self._phase: str = order["phase"]
        self._armed: bool = order["stage"] == "start"
        self._store = os.fspath(store)
        self._aside = Path(order["aside"])
        self._counts: Counter[str] = Counter()
        self._files: set[int] = set()
        self._lock = threading.Lock()
        if not self._armed:
            signal.signal(signal.SIGUSR1, self._arm)

    @property
    def in_the_middle(self) -> bool:
        """Whether it comes half-way through a write."""
        return self._phase == "middle"

    def _arm(self, *_: object) -> None:
        self._armed = True

    def mine(self, what: Any) -> bool:
        """Say whether a path or descriptor is of the store."""
        if isinstance(what, int):
            return what in self._files
        path: str = os.path.abspath(os.fspath(what))
        return path.startswith(self._store)

    def opened(self, fd: int, path: Any) -> None:
        """Note what an open file is."""
        with self._lock:
            if self.mine(path):
                self._files.add(fd)
            else:
                self._files.discard(fd)

    def is_due(self, operation: str) -> bool:
        """Count an operation and say whether it is the one."""
        with self._lock:
            if not self._armed:
                return False
            self._counts[operation] += 1
            if self._operation == ANY:
                return self._counts.total() == self._nth
            return operation == self._operation and self._counts[operation] == self._nth

    def die(self, phase: str, path: Any = "") -> None:
        """End the process if this is the phase in which it is to end."""
        if phase == self._phase:
            told = f"killed: {phase} {self._operation} {self._nth} {path}\n"
            _REAL_WRITE(2, told.encode())
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

    def keep(self, path: Any) -> None:
        """Keep what is about to be removed, for the test to read."""
        kept = self._aside / Path(path).parent.name / Path(path).name
        if kept.suffix == ".otlp" and not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            _REAL_LINK(path, kept)


def interpose(order: dict[str, Any], store: str) -> None:
    """Stand between podtrail and `os` from now on."""
    death = Death(order, Path(store))

    def opening(path: Any, flags: int, *more: Any, **named: Any) -> int:
        makes = flags & os.O_CREAT and death.mine(path) and not os.path.exists(path)
        due = makes and death.is_due("create")
        if due:
            death.die("before", path)
        fd = _REAL_OPEN(path, flags, *more, **named)
        death.opened(fd, path)
        if due:
            death.die("after", path)
        return fd

    os.open = opening
    kinds = {
        "write": ("write", "pwrite", "writev", "pwritev"),
        "sync": ("fsync", "fdatasync"),
        "rename": ("rename", "replace"),
        "unlink": ("unlink", "remove"),
        "truncate": ("ftruncate", "truncate"),
    }
    for operation, names in kinds.items():
        for name in names:
            if hasattr(os, name):
                setattr(os, name, _around(getattr(os, name), operation, death))


def _around(real: Callable[..., Any], operation: str, death: Death) -> Callable[..., Any]:
    @wraps(real)
    def instead(what: Any, *more: Any, **named: Any) -> Any:
        if not death.mine(what):
            return real(what, *more, **named)
        if operation == "unlink":
            death.keep(what)
        if not death.is_due(operation):
            return real(what, *more, **named)
        death.die("before", what)
        if operation == "write" and death.in_the_middle:
            real(what, _half_of(more[0]), *more[1:], **named)
            death.die("middle", what)
        result = real(what, *more, **named)
        death.die("after", what)
        return result

    return instead


def _half_of(data: Any) -> Any:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)[: len(data) // 2]
    whole = b"".join(data)
    return [whole[: len(whole) // 2]]
