"""Journals on disk: what is to survive the process, in segments that are recordings, with checksums."""

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import Disk, SystemDisk
from podtrail.storage.errors import StorageError, UnreadableEntry
from podtrail.storage.instruments import StorageDamage, StorageInstruments
from podtrail.storage.journal import Journal
from podtrail.storage.provider import StorageProvider
from podtrail.storage.segment import Position
from podtrail.storage.worker import InlineWorker, ThreadWorker, Worker, inline

__all__ = [
    "Disk",
    "Entry",
    "InlineWorker",
    "Journal",
    "Position",
    "StorageDamage",
    "StorageError",
    "StorageInstruments",
    "StorageProvider",
    "SystemDisk",
    "ThreadWorker",
    "UnreadableEntry",
    "Worker",
    "inline",
]
