"""Configuration of the `otlp_json_file` receiver."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from podtrail.config.types import MILLISECOND, Model, PositiveDuration, WarningPath
from podtrail_receivers.files.matching import excludes, means

_FOLLOW = "Go on as files grow, rotate and appear; otherwise read what is there and end."
_START_AT = "With `follow`: where to begin in files that are there at the start."
_ANY_FORM = "remove it: every form is recognized, and files are read one after the other"


class Config(Model):
    """Read recordings: one request a line (OTLP JSON) or frame (length-prefixed protobuf), plain, gzip or zstd.

    The Collector's receiver always follows, from the end on; here `follow: true` asks for that. Under its older name,
    `otlpjsonfile`, `follow` is true and `start_at` is `end` unless they are given.
    """

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "acquire_fs_lock",
                "compression",
                "encoding",
                "fingerprint_size",
                "force_flush_period",
                "initial_buffer_size",
                "max_batches",
                "max_concurrent_files",
                "max_log_size",
            ),
            _ANY_FORM,
        ),
        **dict.fromkeys(
            (
                "include_file_name",
                "include_file_name_resolved",
                "include_file_path",
                "include_file_path_resolved",
                "include_file_owner_group_name",
                "include_file_owner_name",
                "include_file_record_number",
                "include_file_record_offset",
            ),
            "remove it: spans are passed on as they stand in the file",
        ),
        **dict.fromkeys(
            ("delete_after_read", "exclude_older_than", "header", "ordering_criteria", "polls_to_archive"),
            "let a Collector follow the files and send OTLP to podtrail",
        ),
        "replay_file": "remove it: files are read whole; `follow: true` goes on as they grow",
    }
    harmless: ClassVar[frozenset[str]] = frozenset(key for key, hint in of_the_collector.items() if hint == _ANY_FORM)

    include: tuple[str, ...] = Field(
        min_length=1,
        description="Files to read: paths, or patterns with `*`, `?`, `[…]`, `{a,b}` and `**`, as in the Collector.",
    )
    exclude: tuple[str, ...] = Field(
        (), description="Files of these not to read: paths or patterns; one without `/` means the name of a file."
    )
    follow: bool = Field(
        False,
        description=_FOLLOW,
    )
    start_at: Literal["beginning", "end"] = Field("beginning", description=_START_AT)
    poll_interval: PositiveDuration = Field(
        200 * MILLISECOND, description="With `follow`: how often to look for what is new."
    )

    storage: str | None = Field(
        None,
        description="With `follow`: a storage extension (`file_storage`), listed under `service::extensions`, in which "
        "is kept how far each file was handed over, so that a restart goes on there.",
    )

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of what does nothing while files are read once."""
        if self.follow:
            return []
        text = "has no effect without follow: true; the Collector's receiver always follows"
        return [((key,), text) for key in ("start_at", "poll_interval", "storage") if key in self.model_fields_set]

    def reads(self, path: str) -> bool:
        """Say whether a file is read, now or once it exists."""
        if any(excludes(pattern, path) for pattern in self.exclude):
            return False
        return any(means(pattern, path) for pattern in self.include)


class FollowingConfig(Config):
    """As `otlp_json_file`, with the defaults of the Collector: files are followed from their ends on."""

    follow: bool = Field(True, description=_FOLLOW)
    start_at: Literal["beginning", "end"] = Field("end", description=_START_AT)
