"""`recording`: writes what comes, request by request with the time of its arrival, as a recording to replay.

The name of the file says its form: `.jsonl` (OTLP JSON, a request a line) or `.otlp` (protobuf, each behind its
length), either with `.gz` or `.zst`. Requests are neither put together nor cut, so that a replay sees the arrivals that
the pipelines saw. To record what comes in, let a pipeline without processors stand beside the others.
"""

from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from podtrail.component import Context, Factory
from podtrail.config.types import SECOND, Model, NonNegativeDuration
from podtrail.recording import RecordingForm
from podtrail_exporters.file import RotationSettings

if TYPE_CHECKING:
    from podtrail_exporters.recording.exporter import RecordingExporter


class RecordingRotation(RotationSettings):
    """When to begin a new file, and how many old ones to keep."""

    interval: NonNegativeDuration = Field(
        0, description="Begin a new file with the first request after this long; 0s: however old it is."
    )


class Config(Model):
    """Writes arrival-stamped recordings."""

    path: str = Field(
        min_length=1, description="Where to write: a name in .jsonl or .otlp, or either with .gz or .zst behind."
    )
    append: bool = Field(
        True,
        description="Continue an existing recording, an unfinished request at its end cut off; otherwise empty it.",
    )
    flush_interval: NonNegativeDuration = Field(
        SECOND, description="Force what was written onto the disk this often; 0s: leave that to the system."
    )
    rotation: RecordingRotation | None = Field(None, description="Begin new files; absent: one file that grows.")
    create_directory: bool = Field(True, description="Make the directories of the path where they are missing.")

    @field_validator("path")
    @classmethod
    def _says_its_form(cls, path: str) -> str:
        RecordingForm.of(path)
        return path

    def writes(self) -> dict[str, str]:
        """Return the file that is written, by the key that names it."""
        return {"path": self.path}


def create(config: Config, context: Context) -> "RecordingExporter":
    """Make the exporter."""
    from podtrail_exporters.recording.exporter import RecordingExporter

    return RecordingExporter(config, context)


FACTORY = Factory(kind="exporter", type="recording", Config=Config, create=create)
