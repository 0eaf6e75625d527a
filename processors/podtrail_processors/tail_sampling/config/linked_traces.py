"""The settings of `linked_traces`."""

from collections.abc import Mapping
from typing import Final

from pydantic import Field, field_validator

from podtrail.config.types import SECOND, Model, PositiveDuration
from podtrail.pod_identity import POD_UID

_MIB = 1 << 20
_MOST_HOPS: Final = 8
_MOST_JOINS: Final = 8
_LONGEST_KEY: Final = 120
KEY_BYTES: Final = 1_170
"""What an id or value of a kept trace takes in memory, with its share of the trace; as measured."""
_SHARE: Final = 5
"""A fifth of the memory that all components may take is for remembering kept traces."""


class LinkedTracesConfig(Model):
    """Settings of `linked_traces`."""

    keep: bool = Field(
        False, description="Keep with a trace those that are linked with it: by span links, or by `join_on`."
    )
    max_hops: int = Field(
        2, ge=1, le=_MOST_HOPS, description="How many links away from a trace that a policy kept others are kept."
    )
    whole_pods: bool = Field(
        False,
        description="Traces of one Pod count as one: from one to the other there is no hop. A trace that is about "
        "several Pods is kept with each of them, and none of them for the sake of another.",
    )
    grace_period: PositiveDuration = Field(
        30 * SECOND,
        description="How long a trace that no policy kept rests, to be rescued should one that it is linked with be "
        "kept; a kept trace is remembered for those that come later for so long and `decision_wait`.",
    )
    grace_max_bytes: int = Field(
        64 * _MIB,
        ge=0,
        description="Bytes that resting traces may take; beyond that the oldest leaves, not kept. 0: none rests.",
    )
    join_on: tuple[str, ...] = Field(
        (POD_UID,),
        description="Attributes of spans or resources: traces that have the same value in one of them are linked. "
        "`k8s.pod.uid` also stands for what the API server's spans say of a Pod: its namespace and name.",
    )
    max_linked_traces: int = Field(
        64,
        ge=1,
        description="How many traces at most are kept for the sake of one that a policy kept, whatever links to it.",
    )
    max_remembered: int = Field(
        200_000,
        ge=1,
        description="By how many ids and values kept traces are remembered; beyond that the oldest is forgotten. Fewer "
        "where they would take more than a fifth of the memory that `memory_limiter` or the container leaves to all "
        "components.",
    )

    def most_remembered(self, budget: int) -> int:
        """Return by how many ids and values kept traces are remembered.

        Args:
            budget: Bytes that all components together may hold; 0 if nothing limits them.
        """
        share = budget // _SHARE // KEY_BYTES
        return min(self.max_remembered, share or self.max_remembered)

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return the bytes that resting and remembered traces may take, by key."""
        if not self.keep:
            return {}
        return {
            "linked_traces::grace_max_bytes": self.grace_max_bytes,
            "linked_traces::max_remembered": self.most_remembered(budget) * KEY_BYTES,
        }

    @field_validator("join_on")
    @classmethod
    def _few_short_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if len(keys) > _MOST_JOINS:
            raise ValueError(f"must not have more than {_MOST_JOINS} attributes")
        for key in keys:
            if not 0 < len(key.encode()) <= _LONGEST_KEY:
                raise ValueError(f"an attribute's key must have 1 to {_LONGEST_KEY} bytes, {key[:20]!r} has not")
        return keys
