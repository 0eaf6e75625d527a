"""Settings that name topics: those that are read, and those that something else is written to."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import Model, WarningPath
from podtrail.transport.kafka.topic_name import checked_topic

_NOT_POSIX = re.compile(r"\\[dDpPAzZ]|\(\?.?|[*+?}]\?")


class TracesSettings(Model):
    """Which topics are read, and what is in them."""

    topics: tuple[str, ...] = Field(
        ("otlp_spans",), min_length=1, description="Topics to read; one that begins with `^` is a regular expression."
    )
    exclude_topics: tuple[str, ...] = Field(
        (), description="Regular expressions of topics not to read, where `topics` has a regular expression."
    )
    encoding: Literal["otlp_proto", "otlp_json"] = Field(
        "otlp_proto", description="What a message is: an ExportTraceServiceRequest, as protobuf or as OTLP JSON."
    )
    topic: str | None = Field(None, description="The older form of `topics`, for one.")
    exclude_topic: str | None = Field(None, description="The older form of `exclude_topics`, for one.")

    @model_validator(mode="before")
    @classmethod
    def _read_older_forms(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        read = dict(data)
        for older, newer in (("topic", "topics"), ("exclude_topic", "exclude_topics")):
            if read.get(older) is None:
                continue
            if read.get(newer):
                raise ValueError(f"has both {older} and {newer}: remove {older}, which is the older form")
            read[newer] = [read[older]]
        return read

    @field_validator("topics")
    @classmethod
    def _check_topics(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if topic.startswith("^"):
                _compiled(topic)
            else:
                checked_topic(topic)
        return topics

    @field_validator("exclude_topics")
    @classmethod
    def _check_exclusions(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not topic:
                raise ValueError("an empty regular expression would exclude every topic")
            if "," in topic:
                raise ValueError(f"{topic!r} has a comma, which librdkafka ends an expression at: write several")
            _compiled(topic)
        return topics

    @model_validator(mode="after")
    def _check_exclusions_apply(self) -> Self:
        if self.exclude_topics and not any(topic.startswith("^") for topic in self.topics):
            raise ValueError("exclude_topics only applies to regular expressions, and no topic begins with ^")
        return self

    def reads(self, topic: str) -> bool:
        """Say whether a topic of this name is read."""
        if topic in self.topics:
            return True
        if any(re.search(pattern, topic) for pattern in self.exclude_topics):
            return False
        return any(re.match(pattern, topic) for pattern in self.topics if pattern.startswith("^"))

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        older = (("topic", "topics"), ("exclude_topic", "exclude_topics"))
        return [((key,), f"is the older form of {newer}: [...]") for key, newer in older if getattr(self, key)]


class CheckpointSettings(Model):
    """Where the state of the processors is kept, so that who takes a partition over need not read as far back."""

    enabled: bool = Field(
        True,
        description="Keep it in Kafka. Otherwise a partition is read again from the oldest record that is undecided, "
        "with processors that remember nothing: a trace of which earlier records were decided is decided anew.",
    )
    topic: str = Field(
        "podtrail_checkpoints",
        description="The topic for it, compacted; made when it is not there. Several groups may share it.",
    )

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: str) -> str:
        return checked_topic(topic)


class DeadLetterSettings(Model):
    """Where messages go that can't be read."""

    topic: str = Field(description="The topic they are copied to, with key, headers and where they stood.")

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: str) -> str:
        return checked_topic(topic)


def _compiled(pattern: str) -> re.Pattern[str]:
    if found := _NOT_POSIX.search(pattern):
        raise ValueError(
            f"{pattern!r} has {found[0]}, which librdkafka's expressions (POSIX, extended) do not know: "
            "write for example [0-9] for \\d, and (...) for a group"
        )
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
