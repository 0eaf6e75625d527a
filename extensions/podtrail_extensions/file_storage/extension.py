"""The folder of a `file_storage`: locked while it runs, with a folder in it for each journal."""

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from podtrail.component import Context, StartError
from podtrail.config.types import SECOND
from podtrail.storage import Journal, StorageError, StorageInstruments, SystemDisk
from podtrail_extensions.file_storage.config import LOCK, Config

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 255
_PAUSE = 0.05


class FileStorage:
    """Opens journals; entering takes the folder for this process, leaving lets go of it."""

    def __init__(self, config: Config, context: Context) -> None:
        """Describe it."""
        self._config = config
        self._context = context
        self._folder = Path(config.directory)
        self._lock = -1
        self._open: dict[str, Journal] = {}

    async def __aenter__(self) -> Self:
        """Take the folder. StartError when it is missing, no folder, not ours to write, or another process has it."""
        try:
            if self._config.create_directory and not self._folder.exists():
                SystemDisk().make_folder(self._folder, self._config.mode)
            self._lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError) and not self._folder.exists()
            hint = ": make it, or set create_directory: true" if missing else ""
            raise StartError(f"can't use the folder {self._folder}: {error.strerror}{hint}") from error
        try:
            await self._take_lock()
        except OSError as error:  # a file system without locks
            os.close(self._lock)
            raise StartError(f"can't lock the folder {self._folder}: {error.strerror}") from error
        except BaseException:
            os.close(self._lock)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for journal in self._open.values():
            await journal.close()
        self._open.clear()
        os.close(self._lock)

    async def open(self, name: str) -> Journal:
        """Open the journal of that name.

        Raises:
            StorageError: it can't be opened, or is open already.
        """
        if name in self._open and not self._open[name].closed:
            raise StorageError(f"{name} is open already")
        folder = self._folder / file_name(name)
        journal = Journal(
            folder,
            SystemDisk(),
            fsync=self._config.fsync,
            mode=self._config.mode,
            instruments=StorageInstruments(folder, self._context.metrics, self._context.log, self._context.id),
        )
        await journal.open()
        self._open[name] = journal
        return journal

    def ready(self) -> None:
        """Name what lies here and nobody uses: an exporter or a pipeline that is gone, or no longer stored."""
        used = {file_name(name) for name, journal in self._open.items() if not journal.closed}
        for folder in sorted(path for path in self._folder.iterdir() if path.is_dir() and path.name not in used):
            size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
            if size:
                self._context.log.warning(
                    "%s holds %d bytes that nothing uses: whose it was is not configured or not stored any more. To "
                    "have them sent, restart podtrail with %s; if they are not wanted, remove the folder",
                    folder,
                    size,
                    _key_of(folder.name, self._context.id),
                )

    def not_ready(self) -> None:
        """The pipelines are about to stop, which changes nothing here."""

    async def _take_lock(self) -> None:
        until = time.monotonic() + self._config.timeout / SECOND
        while not _locked(self._lock):
            if time.monotonic() >= until:
                raise StartError(f"{self._folder} is in use by {_holder(self._lock)}: give each its own directory")
            await asyncio.sleep(_PAUSE)
        with suppress(OSError):  # a full disk: then a second process can't say who has it
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)


def file_name(name: str) -> str:
    """Return a journal's folder name, as the Collector writes it: what is unsafe as ~ and its number in hexadecimal."""
    safe = _UNSAFE.sub(lambda found: f"~{ord(found[0]):04X}", name)
    return safe if len(safe) <= _LONGEST_NAME else hashlib.sha256(safe.encode()).hexdigest()


def _key_of(folder: str, storage: str) -> str:
    """Return the key that has a journal with this folder used, in words."""
    if folder == "pipelines":
        return f"durable: {storage} in the pipeline that had it"
    if folder.startswith("exporter_"):
        return f"sending_queue::storage: {storage} in that exporter"
    return f"storage: {storage} in what it was of"


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _holder(handle: int) -> str:
    pid = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
    if pid == str(os.getpid()):
        return "another file_storage of this configuration"
    return f"another process (pid {pid})" if pid.isdigit() else "another process"
