"""The keys of `file_storage`: those of the Collector's, and what they mean here."""

import re
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from podtrail.config.types import SECOND, Model, NonNegativeDuration, PositiveDuration, WarningPath

DIRECTORY = "/var/lib/otelcol/file_storage"
"""Where the Collector's keeps its files, too."""
LOCK = "podtrail.lock"
"""The file that is locked while a process has the folder."""
_OWNERS = 0o700
_OCTAL = re.compile(r"(0o?)?[0-7]{3}")
_NO_USE = "has no effect: segments that are no longer needed are removed whole, so there is nothing to compact"


class CompactionSettings(Model):
    """Accepted, since configurations of the Collector have them: there is nothing to compact."""

    on_start: bool = Field(False, description="No effect.")
    on_rebound: bool = Field(False, description="No effect.")
    directory: str = Field(DIRECTORY, description="No effect.")
    rebound_needed_threshold_mib: int = Field(100, description="No effect.")
    rebound_trigger_threshold_mib: int = Field(10, description="No effect.")
    max_transaction_size: int = Field(65536, ge=0, description="No effect.")
    check_interval: PositiveDuration = Field(5 * SECOND, description="No effect.")
    cleanup_on_start: bool = Field(False, description="No effect.")


class Config(Model):
    """Keep what a pipeline has acknowledged in files, so that it survives the process."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "max_size": "remove it: what is held and queued bounds the store; for a hard limit give it its own volume, "
        "and when that is full senders are refused"
    }

    directory: str = Field(DIRECTORY, min_length=1, description="Folder of the store; one process has it at a time.")
    timeout: NonNegativeDuration = Field(
        SECOND, description="How long to wait at the start for another process to let go of the folder."
    )
    fsync: bool = Field(
        False,
        description="Acknowledge only what is forced onto the disk, so that it survives power loss; otherwise what "
        "the system holds, which survives the end of the process.",
    )
    create_directory: bool = Field(False, description="Make the folder where it is missing.")
    directory_permissions: str = Field(
        "0700", description="Permissions of folders that are made, octal, in quotes; files are always 0600."
    )
    compaction: CompactionSettings = Field(
        default_factory=CompactionSettings, description="Accepted for the Collector's sake."
    )
    recreate: bool = Field(
        False, description="No effect: what is damaged is always moved aside, and never prevents the start."
    )

    @field_validator("directory_permissions")
    @classmethod
    def _check_octal(cls, value: str) -> str:
        if not _OCTAL.fullmatch(value):
            raise ValueError(f'{value!r} are no permissions: write three octal digits in quotes, as in "0750"')
        if int(value.replace("o", ""), 8) & _OWNERS != _OWNERS:
            raise ValueError(f'{value!r} keep podtrail itself out: the owner needs all, as in "0700" or "0750"')
        return value

    def locks(self) -> tuple[str, str, str]:
        """Return the key of the folder, the folder, and the file in it that is locked."""
        return "directory", self.directory, LOCK

    @property
    def mode(self) -> int:
        """The permissions of folders."""
        return int(self.directory_permissions.replace("o", ""), 8)

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Name what has no effect."""
        found: list[tuple[WarningPath, str]] = []
        if self.compaction.model_fields_set:
            found.append((("compaction",), _NO_USE))
        if "recreate" in self.model_fields_set:
            found.append(
                (("recreate",), "has no effect: what is damaged is always moved aside, and never prevents the start")
            )
        return found
