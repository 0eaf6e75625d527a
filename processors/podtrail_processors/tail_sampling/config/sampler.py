"""The configuration of `tail_sampling`: the Collector's keys, and ours beside them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from podtrail.config.feature_gates import TAIL_STORAGE
from podtrail.config.ids import parse_id
from podtrail.config.mistakes import Mistake, Mistakes
from podtrail.config.types import SECOND, Duration, Model, NonNegativeDuration, WarningPath
from podtrail_processors.tail_sampling.config.linked_traces import LinkedTracesConfig
from podtrail_processors.tail_sampling.config.stress_relief import StressReliefConfig
from podtrail_processors.tail_sampling.policies import conjunction, negation
from podtrail_processors.tail_sampling.policies.composite import Config as Composite
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.policies.lenient import Int64, Uint64

_MOST_SHARDS = 256
_MOST_REMEMBERED = 1_000_000_000
_DECIDED_BYTES, _CACHED_BYTES, _KEPT_BYTES, _NOT_KEPT_BYTES = 600, 350, 6, 9
"""What a decided trace and a remembered decision take in memory, as measured."""
_EVICTED_BYTES = 235
"""What the id of an evicted trace takes, as measured."""
_LEAST_EVICTED, _MOST_EVICTED = 1024, 8192
"""So many evicted traces are remembered, however small or large `num_traces` is."""
_CHANGES_BYTES = 3 << 20
"""What traces of operators take at most that may have changed the scheduler's configuration."""
_OTHER_CHANCE = ("probabilistic", "rate_limiting", "bytes_limiting")
_STORAGE = "here it is the key that keeps undecided traces on disk, and needs no gate"
_ZERO_WHEN_NULL = ("decision_wait", "num_traces")


class TopPolicy(Leaf):
    """A policy of the list."""

    plain: ClassVar[frozenset[str]] = Leaf.plain | {"shadow"}

    shadow: bool = Field(False, description="Only try it: it votes and is counted, and changes nothing.")
    and_: conjunction.AndConfig = Field(
        conjunction.AndConfig(), alias="and", description="Traces that several policies agree on."
    )
    not_: negation.Config = Field(negation.Config(), alias="not", description="The opposite of one policy.")
    composite: Composite = Field(
        Composite(), description="Several policies in order, each with its share of so many spans a second."
    )
    drop: conjunction.DropConfig = Field(
        conjunction.DropConfig(), description="Traces that several policies agree on are dropped, whatever others say."
    )

    @model_validator(mode="after")
    def _can_be_made(self) -> "TopPolicy":
        if not self.name:
            raise ValueError("policy name cannot be empty")
        self.create()
        return self


class DecisionMemoryConfig(Model):
    """How many decided traces are remembered by little more than their ids, beside the caches or instead of them."""

    kept: Uint64 = Field(
        0,
        description="How many kept traces are remembered at least, in 6 bytes each; about one new trace in 33 million "
        "is taken for one of them, and kept. 0: none.",
    )
    not_kept: Uint64 = Field(
        0,
        description="How many traces that were not kept are remembered at least, in 9 bytes each; about one new trace "
        "in 8 billion is taken for one of them. 0: none.",
    )

    @field_validator("kept", "not_kept")
    @classmethod
    def _fits_into_memory(cls, traces: int) -> int:
        if traces > _MOST_REMEMBERED:
            raise ValueError(f"must not exceed {_MOST_REMEMBERED}")
        return traces


class DecisionCacheConfig(Model):
    """How many decided traces are remembered, so that late spans follow them after the trace itself is forgotten."""

    sampled_cache_size: Int64 = Field(0, description="How many kept traces are remembered; 0: no cache.")
    non_sampled_cache_size: Int64 = Field(0, description="How many traces that were not kept are remembered; 0: none.")


class Config(Model):
    """Settings of `tail_sampling`."""

    decision_wait: Duration = Field(
        30 * SECOND, description="A trace is decided so long after its first span; whole seconds count, at least one."
    )
    decision_wait_after_root_received: Duration = Field(
        0, description="Or so long after its root arrived, if that is earlier; 0: off. Above a second whole ones count."
    )
    decision_idle: NonNegativeDuration = Field(
        0,
        description="Or when no span of the trace has come for so long, if that is earlier; 0: off. Of "
        "`decision_wait`, the time after the root and this the earliest counts.",
    )
    num_traces: Uint64 = Field(
        50_000, description="How many traces are held; beyond that the oldest is lost without a decision."
    )
    maximum_held_mib: Uint64 = Field(
        0,
        description="How many MiB undecided traces may take in memory, their headers and what holding them costs "
        "included; beyond that the oldest are decided early, or first the one that takes over half of it. 0: no bound.",
    )
    maximum_held_trace_kib: Uint64 = Field(
        0,
        description="A trace that takes more KiB in memory is decided at once, on what is there; the rest of it "
        "follows the decision. Others are untouched. 0: no limit.",
    )
    policies: tuple[TopPolicy, ...] = Field((), description="A trace is kept when one of them says yes.")
    shadow_policies: tuple[TopPolicy, ...] = Field(
        (),
        description="Policies to compare with: they decide as `policies` would, which is counted and changes nothing.",
    )
    record_reason: bool = Field(
        False, description="Write on the root span of kept traces which policy decided, and why."
    )
    decision_cache: DecisionCacheConfig = Field(
        DecisionCacheConfig(), description="Remembers decisions for late spans."
    )
    decision_memory: DecisionMemoryConfig = Field(
        DecisionMemoryConfig(), description="Remembers decisions on millions of traces for late spans."
    )
    rescue_late_errors: bool = Field(
        False,
        description="A trace that no policy kept is kept from the moment on when a span with status ERROR comes late, "
        "or the root of an attempt that did not succeed; not after a drop policy.",
    )
    dry_run: bool = Field(
        False,
        description="Let everything pass, with `podtrail.sampling.decision`, `.policy` and `.reason` on the root of "
        "what would not have been kept.",
    )
    sample_on_first_match: bool = Field(False, description="Ask no further policy once one has said yes.")
    drop_pending_traces_on_shutdown: bool = Field(
        False, description="At shutdown lose what is undecided instead of deciding on what is there."
    )
    maximum_trace_size_bytes: Uint64 = Field(
        0, description="A trace that grows beyond this is not kept, whatever the policies say; 0: no limit."
    )
    expected_new_traces_per_sec: Uint64 = Field(0, description="Accepted from the Collector; nothing depends on it.")
    num_shards: Uint64 = Field(1, description="Divide traces by their id, and num_traces, caches and rates with them.")
    sampling_strategy: Literal["trace-complete", "span-ingest"] = Field(
        "trace-complete",
        description="Decide on whole traces; or `span-ingest`: on spans as they come, what a request has of a trace by "
        "itself, so that a trace leaves as soon as a part of it matches.",
    )
    block_on_overflow: bool = Field(
        False, description="Take nothing in while `num_traces` are undecided, instead of losing the oldest."
    )
    linked_traces: LinkedTracesConfig = Field(
        LinkedTracesConfig(), description="Keeps together traces that are linked."
    )
    stress_relief: StressReliefConfig = Field(
        StressReliefConfig(), description="What is done when memory gets short or decisions come late."
    )
    storage: str | None = Field(
        None,
        description="Id of a `file_storage` extension: undecided traces survive the process. The same as `durable` of "
        "the pipelines that this sampler is in.",
    )
    tail_storage: str | None = Field(
        None,
        description="Accepted from the Collector; traces are held in memory, which `maximum_held_mib` bounds; on "
        "disk, too, with `storage`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_zero(cls, data: Any) -> Any:
        """Read `num_traces:` without a value as the Collector does: as 0, not as its default."""
        if isinstance(data, Mapping):
            return {key: 0 if value is None and key in _ZERO_WHEN_NULL else value for key, value in data.items()}
        return data

    @property
    def policy_names(self) -> Sequence[str]:
        """The policies whose votes a verdict tells, in their order."""
        return [policy.name for policy in self.policies]

    @property
    def asks_all_policies(self) -> bool:
        """Whether every policy votes on every trace."""
        return not self.sample_on_first_match

    @field_validator("policies", "shadow_policies", mode="wrap")
    @classmethod
    def _names_are_unique(cls, given: Any, read: ValidatorFunctionWrapHandler) -> Any:
        """Tell of names that are given twice beside all else that is wrong with the policies."""
        items = given if isinstance(given, list | tuple) else ()
        names = [item.get("name") if isinstance(item, Mapping) else getattr(item, "name", None) for item in items]
        twice = Mistakes(
            [
                Mistake((at, "name"), f"duplicate policy name {name!r}")
                for at, name in enumerate(names)
                if isinstance(name, str) and name and name in names[:at]
            ]
        )
        try:
            policies = read(given)
        except ValidationError as error:
            if not twice.found:
                raise
            also: Any = {"type": "value_error", "loc": (), "input": given, "ctx": {"error": twice}}
            wrong: Any = error.errors(include_url=False)
            raise ValidationError.from_exception_data(error.title, [*wrong, also]) from None
        if twice.found:
            raise twice
        return policies

    @field_validator("num_shards")
    @classmethod
    def _few_shards(cls, shards: int) -> int:
        if shards > _MOST_SHARDS:
            raise ValueError(f"must not exceed {_MOST_SHARDS}")
        return shards

    @model_validator(mode="after")
    def _parts_can_be_judged(self) -> "Config":
        if self.sampling_strategy == "span-ingest":
            if self.shadow_policies or any(policy.shadow for policy in self.policies):
                raise ValueError('sampling_strategy "span-ingest" judges parts of traces: there no policy can be tried')
            for policy in self.policies:
                if policy.create().stateful:
                    raise ValueError(
                        f'sampling_strategy "span-ingest" requires all policies to be stateless, but policy '
                        f'"{policy.name}" is stateful'
                    )
        return self

    @model_validator(mode="after")
    def _links_are_seen_whole(self) -> "Config":
        if self.linked_traces.keep:
            if self.num_shards > 1:
                raise ValueError("linked_traces needs num_shards: 1, for linked traces may come to different shards")
            if self.sampling_strategy == "span-ingest":
                raise ValueError(
                    'linked_traces needs sampling_strategy "trace-complete": with "span-ingest" traces leave before '
                    "all their links are known"
                )
        return self

    @field_validator("tail_storage")
    @classmethod
    def _names_a_component(cls, storage: str | None, info: ValidationInfo) -> str | None:
        if storage is not None:
            parse_id(storage)
            if TAIL_STORAGE not in (info.context or {}).get("gates", ()):
                raise ValueError(
                    f'requires the "{TAIL_STORAGE}" feature gate to be enabled, use --feature-gates=+{TAIL_STORAGE}; '
                    f"did you mean storage? {_STORAGE}"
                )
        return storage

    @model_validator(mode="after")
    def _storage_is_not_divided(self) -> "Config":
        if self.tail_storage is not None and self.num_shards > 1:
            raise ValueError("num_shards greater than 1 is not supported with tail_storage, as in the Collector")
        return self

    @property
    def most_evicted(self) -> int:
        """Of how many evicted traces it is remembered when they would have been decided."""
        return min(max(self.num_traces, _LEAST_EVICTED), _MOST_EVICTED)

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is accepted without doing anything, and what keeps nothing."""
        found: list[tuple[WarningPath, str]] = []
        if self.decision_wait < 0:
            found.append((("decision_wait",), "is negative: a trace is decided after 1s, as in the Collector"))
        if self.decision_wait_after_root_received < 0:
            found.append((("decision_wait_after_root_received",), "is negative: it is off, as in the Collector"))
        if self.expected_new_traces_per_sec:
            found.append((("expected_new_traces_per_sec",), "has no effect: nothing is allocated in advance"))
        if self.tail_storage:
            text = f"has no effect: traces are held in memory, up to maximum_held_mib; did you mean storage? {_STORAGE}"
            found.append((("tail_storage",), text))
        if self.num_shards > 1:
            text = "makes nothing faster here; num_traces, caches and rates are divided among the shards"
            found.append((("num_shards",), text))
        if self.linked_traces.model_fields_set - {"keep"} and not self.linked_traces.keep:
            found.append((("linked_traces",), "has no effect without keep: true"))
        if self.dry_run:
            found.append((("dry_run",), "nothing is dropped: traces that would not be kept are only marked"))
        if all(policy.shadow for policy in self.policies):
            found.append(
                (
                    ("policies",),
                    "without a policy that is no shadow no trace is kept"
                    if self.policies
                    else "without a policy no trace is kept",
                )
            )
        for at, policy in enumerate(self.policies):
            found += [(("policies", at), text) for text in self._hardly_meant(policy)]
        for at, policy in enumerate(self.shadow_policies):
            if policy.shadow:
                found.append((("shadow_policies", at, "shadow"), "has no effect: they all are only tried"))
        if self.sampling_strategy == "span-ingest":
            for at, policy in enumerate(self.policies):
                if policy.type == "drop":
                    text = "with span-ingest no trace is kept: it may still match, and holds every yes back till then"
                    found.append((("policies", at), text))
        return found

    def warnings_in_partitions(self) -> list[tuple[WarningPath, str]]:
        """Return what has no effect in a partition."""
        stress = self.stress_relief.warnings_in_partitions(bounded=bool(self.maximum_held_mib))
        found: list[tuple[WarningPath, str]] = [(("stress_relief", *below), text) for below, text in stress]
        if self.drop_pending_traces_on_shutdown:
            text = "has no effect: what is undecided when podtrail stops is decided by the partition's next owner"
            found.append((("drop_pending_traces_on_shutdown",), text))
        return found

    def _hardly_meant(self, policy: TopPolicy) -> Iterator[str]:
        """Yield what a policy lacks that stands elsewhere in the configuration."""
        if not self.linked_traces.keep and any(leaf.type == "recovered" for leaf in policy.leaves()):
            yield "the failed attempts before a success are kept only with linked_traces, or by a policy of their own"
        chance = next((leaf.type for leaf in policy.leaves() if leaf.type in _OTHER_CHANCE), None)
        if chance and any(leaf.type == "target_rate" for other in self.policies for leaf in other.leaves()):
            yield f"beside target_rate {chance} distorts the counts that thresholds tell: it chooses otherwise"
        if self.num_shards > 1 and policy.create().learners():
            yield "learns from a part of all attempts: each shard has its own"

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return the bytes of what is remembered of traces and, where that is bounded, of undecided traces."""
        caches, memory = self.decision_cache, self.decision_memory
        cached = max(0, caches.sampled_cache_size) + max(0, caches.non_sampled_cache_size)
        compact = memory.kept * _KEPT_BYTES + memory.not_kept * _NOT_KEPT_BYTES
        return {
            "maximum_held_mib": self.maximum_held_mib << 20,
            # Where a cache remembers decisions, decided traces do not stay.
            "num_traces": 0 if cached or compact else self.num_traces * _DECIDED_BYTES,
            "decision_cache": cached * _CACHED_BYTES,
            "decision_memory": compact,
            "evicted traces": 0 if self.block_on_overflow else self.most_evicted * self.num_shards * _EVICTED_BYTES,
            "configuration changes": _CHANGES_BYTES,
            "stress_relief": self.stress_relief.memory_bound() * self.num_shards,
            **self._bounds_of_policies(),
            **self.linked_traces.memory_bounds(budget),
        }

    def _bounds_of_policies(self) -> Mapping[str, int]:
        """Return the bytes that policies may remember, by key; each shard has its own."""
        lists = {"policies": self.policies, "shadow_policies": self.shadow_policies}
        return {
            f"{key}::{policy.name}": size * self.num_shards
            for key, policies in lists.items()
            for policy in policies
            if (size := policy.memory_bound())
        }
