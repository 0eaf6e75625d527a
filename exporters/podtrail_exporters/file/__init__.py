"""`file`: writes spans to a file, and a sampler's decisions to another.

Every batch is one write of whole messages: an ExportTraceServiceRequest a line in OTLP JSON, or 4-byte big-endian
length-prefixed protobuf. With compression each write is a complete frame (zstd) or member (gzip), so the file is what
`zstd -d` and `gzip -d` read at any moment; the Collector's own form, where each message is compressed alone behind a
length, is not written.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory
from podtrail.config.types import SECOND, Model, NonNegativeDuration

if TYPE_CHECKING:
    from podtrail_exporters.file.exporter import FileExporter


class RotationSettings(Model):
    """When to begin a new file, and how many old ones to keep."""

    max_megabytes: int = Field(100, ge=0, description="Begin a new file rather than exceed so many MiB. 0: 100.")
    max_days: int = Field(0, ge=0, description="Remove rotated files older than so many days; 0: however old.")
    max_backups: int = Field(100, ge=0, description="Keep so many rotated files at most; 0: all.")
    localtime: bool = Field(False, description="Name rotated files by local time instead of UTC.")


class Config(Model):
    """Writes spans to a file."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "compression_params": "remove it: each compression has one level",
        "directory_permissions": "make the directory beforehand",
        "encoding": "use format: json or proto",
        "group_by": "use several file exporters, each behind a filter",
    }
    harmless: ClassVar[frozenset[str]] = frozenset({"compression_params"})

    path: str = Field(min_length=1, description="Where to write spans.")
    append: bool = Field(
        False, description="Continue an existing file, an unfinished message at its end cut off; otherwise empty it."
    )
    format: Literal["json", "proto"] = Field(
        "json", description="`json`: one request a line; `proto`: 4-byte big-endian length-prefixed protobuf."
    )
    compression: Literal["none", "gzip", "zstd", ""] = Field(
        "none", description="`zstd` or `gzip`: the file is a stream that `zstd -d` or `gzip -d` reads."
    )
    flush_interval: NonNegativeDuration = Field(
        SECOND, description="Force what was written onto the disk this often; 0s: leave that to the system."
    )
    rotation: RotationSettings | None = Field(None, description="Begin new files; absent: one file that grows.")
    create_directory: bool = Field(True, description="Make the directories of the paths where they are missing.")
    decisions_path: str | None = Field(
        None,
        min_length=1,
        description="Where to write the sampler's decisions on all traces, kept and dropped: one JSON object a line.",
    )

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if self.path == self.decisions_path:
            raise ValueError("path and decisions_path are the same file: give the decisions one of their own")
        return self

    def writes(self) -> dict[str, str]:
        """Return the files that are written, by the key that names them."""
        named = {"path": self.path, "decisions_path": self.decisions_path}
        return {key: path for key, path in named.items() if path is not None}


def create(config: Config, context: Context) -> "FileExporter":
    """Make the exporter."""
    from podtrail_exporters.file.exporter import FileExporter

    return FileExporter(config, context)


FACTORY = Factory(kind="exporter", type="file", Config=Config, create=create)
