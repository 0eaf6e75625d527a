"""What holds whatever comes, in whatever order: the ledger balances, bounds hold, one thing is told of a trace."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
from podtrail.otlp import Batch, Group, Status, Value, Verdict, encode_span, frame, resource_header, scope_header
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
MIB = 2**20
_HEADERS = [(resource_header({"service.name": name}), scope_header("s")) for name in ("a", "b")]
_POLICIES = [
    {"name": "errors", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
    {"name": "slow", "type": "latency", "latency": {"threshold_ms": 900}},
    {
        "name": "unwanted",
        "type": "drop",
        "drop": {
            "drop_sub_policy": [
                {"name": "x", "type": "boolean_attribute", "boolean_attribute": {"key": "unwanted", "value": True}}
            ]
        },
    },
]


class Sent(NamedTuple):
    """A span to be sent."""

    trace: int
    kind: str = "child"
    header: int = 0
    pad: int = 0

    @property
    def trace_id(self) -> bytes:
        """From 8 on traces have ids whose last 8 bytes are those of another."""
        return (self.trace // 8).to_bytes(8, "big") + (self.trace % 8 + 1).to_bytes(8, "big")

    def group(self, serial: int) -> Group:
        """Return it as a group of its own."""
        attributes: dict[str, Value] = {"pad": "x" * self.pad} if self.pad else {}
        if self.kind == "unwanted":
            attributes["unwanted"] = True
        if self.kind == "attempt":
            attributes["scheduler.result"] = "Unschedulable"
        raw = encode_span(
            trace_id=self.trace_id,
            span_id=serial.to_bytes(8, "big"),
            parent_span_id=b"" if self.kind in ("root", "attempt") else bytes(7) + b"\1",
            name="SchedulePod" if self.kind == "attempt" else "span",
            start=START,
            end=START + (SECOND if self.kind == "slow" else 1),
            status=Status(2, "") if self.kind == "error" else None,
            attributes=attributes,
        )
        return Group(*_HEADERS[self.header], self.trace_id, frame([raw]), 1)


_kinds = st.sampled_from(["child"] * 6 + ["root", "root", "error", "slow", "attempt", "unwanted"])
_spans = st.lists(st.builds(Sent, st.integers(0, 15), _kinds, st.integers(0, 1), st.just(0)), min_size=1, max_size=8)
_remembering = st.sampled_from(
    [
        {},
        {"decision_cache": {"sampled_cache_size": 50, "non_sampled_cache_size": 50}},
        {"decision_cache": {"non_sampled_cache_size": 50}},
        {"decision_memory": {"kept": 50, "not_kept": 50}},
        {"decision_memory": {"kept": 50}},
    ]
)
_ours = st.fixed_dictionaries(
    {
        "decision_idle": st.sampled_from(["0s", "1s", "2500ms"]),
        "decision_wait_after_root_received": st.sampled_from(["0s", "500ms"]),
        "rescue_late_errors": st.booleans(),
        "dry_run": st.booleans(),
        "linked_traces": st.sampled_from([{}, {"keep": True, "grace_period": "2s"}]),
    }
)


def _make(about: dict[str, Any], context: Context) -> Any:
    return FACTORY.create(
        FACTORY.Config.model_validate({"decision_wait": "3s", "policies": _POLICIES} | about), context
    )


Told = dict[bytes, list[tuple[str, str, int]]]
Plan = Sequence[tuple[int, Sequence[Sent]]]
"""Tenths of a second to wait, and what comes then."""


def _told(
    plan: Plan,
    about: dict[str, Any],
    arrange: Callable[[Sequence[Group]], Sequence[Sequence[Group]]],
    *,
    looks: int = 0,
) -> Told:
    """Return what is told of each trace when each arrival is handed over as `arrange` says."""
    made = _make(about, Context(id="tail_sampling"))
    verdicts: list[Verdict] = []
    now = START
    serial = 0
    for tenths, sent in [*plan, (300, ())]:
        for look in range(1, looks + 1):
            _pass(made, now + tenths * SECOND // 10 * look // (looks + 1), verdicts, 1)
        now += tenths * SECOND // 10
        _pass(made, now, verdicts, 1 if looks else 10**9)
        groups = []
        for span in sent:
            serial += 1
            groups.append(span.group(serial))
        for part in arrange(groups):
            verdicts += [verdict for batch in made.add(Batch(part, now), now).out for verdict in batch.verdicts]
    told: Told = defaultdict(list)
    for verdict in verdicts:
        told[verdict.trace_id].append((verdict.decision, verdict.policy, verdict.decided_at))
    return told


def _pass(made: Any, until: int, verdicts: list[Verdict], limit: int) -> None:
    made.expire(made.deadline() - 1 if made.deadline() else until, limit)
    while (due := made.deadline()) is not None and due <= until:
        verdicts += [verdict for batch in made.expire(due, limit) for verdict in batch.verdicts]


def _whole(groups: Sequence[Group]) -> Sequence[Sequence[Group]]:
    return [groups]


def _one_by_one(groups: Sequence[Group]) -> Sequence[Sequence[Group]]:
    return [[group] for group in groups]


def _twice(groups: Sequence[Group]) -> Sequence[Sequence[Group]]:
    return [groups, groups]


def _other_traces_first(groups: Sequence[Group]) -> Sequence[Sequence[Group]]:
    return [sorted(groups, key=lambda group: group.trace_id, reverse=True)]


_plans = st.lists(st.tuples(st.sampled_from([0, 1, 7, 20, 40]), _spans), max_size=10)


@given(_plans, _ours, _remembering, st.sampled_from([_one_by_one, _other_traces_first]), st.integers(0, 3))
@settings(max_examples=large(50, 100))
def test_the_same_is_told_however_arrivals_are_cut_ordered_and_looked_at(
    plan: Plan, ours: dict[str, Any], remembering: dict[str, Any], arrange: Any, looks: int
) -> None:
    about = ours | remembering
    plan = [(tenths, [span for span in sent if span.trace < 8]) for tenths, sent in plan]
    assert _told(plan, about, arrange, looks=looks) == _told(plan, about, _whole)


@given(_plans, _ours, _remembering)
@settings(max_examples=large(40, 100))
def test_a_batch_that_comes_twice_changes_no_decision(
    plan: Plan, ours: dict[str, Any], remembering: dict[str, Any]
) -> None:
    about = ours | remembering
    plan = [(tenths, [span for span in sent if span.trace < 8 and span.kind != "attempt"]) for tenths, sent in plan]
    assert _told(plan, about, _twice) == _told(plan, about, _whole)


class Sampling(RuleBasedStateMachine):
    """A sampler that is sent spans, left to wait, looked at early and replaced by successors."""

    @initialize(
        ours=_ours,
        remembering=_remembering,
        small=st.booleans(),
        shards=st.sampled_from([1, 1, 3]),
        ingest=st.booleans(),
    )
    def begin(self, ours: dict[str, Any], remembering: dict[str, Any], small: bool, shards: int, ingest: bool) -> None:
        """Make the sampler, perhaps with little room."""
        self.linked = bool(ours["linked_traces"])  # which has neither shards nor span-ingest
        self.about = ours | remembering | {"num_shards": 1 if self.linked else shards}
        if small:
            self.about |= {"num_traces": 4, "maximum_held_mib": 1, "maximum_held_trace_kib": 700}
        if ingest and not self.linked:
            self.about["sampling_strategy"] = "span-ingest"
        self.small = small
        self.forgets = small or "sampling_strategy" in self.about
        self.dry = ours["dry_run"]
        self.context = Context(id="tail_sampling")
        self.made = _make(self.about, self.context)
        self.now = START
        self.sent = self.out = 0
        self.told: dict[bytes, list[Verdict]] = defaultdict(list)

    def _take(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.out += batch.span_count
            for verdict in batch.verdicts:
                self.told[verdict.trace_id].append(verdict)

    @rule(spans=_spans, pads=st.lists(st.sampled_from([0, 0, 100_000, 800_000]), min_size=8, max_size=8))
    def send(self, spans: list[Sent], pads: list[int]) -> None:
        """Send spans, large ones where there is little room."""
        groups = []
        for made, pad in zip(spans, pads, strict=False):
            span = made
            self.sent += 1
            if "decision_cache" in self.about and not self.forgets:
                span = span._replace(trace=span.trace % 8)  # caches know ids by their last 8 bytes alone
            groups.append(span._replace(pad=pad if self.small else 0).group(self.sent))
        self._take(self.made.add(Batch(groups, self.now), self.now).out)

    @rule(tenths=st.sampled_from([1, 5, 10, 31]), limit=st.sampled_from([1, 20, 10**9]))
    def wait(self, tenths: int, limit: int) -> None:
        """Let time pass, as the pipeline does."""
        self.now += tenths * SECOND // 10
        while (due := self.made.deadline()) is not None and due <= self.now:
            self._take(self.made.expire(due, limit))

    @rule()
    def look(self) -> None:
        """Ask for what is due before anything is."""
        if (due := self.made.deadline()) is None or due > self.now:
            assert not self.made.expire(self.now, 10**9)

    @rule(shards=st.sampled_from([0, 0, 2, 3]))
    def reload(self, shards: int) -> None:
        """Go on with a successor, perhaps of another number of shards."""
        if shards and not self.small and not self.linked:
            self.about["num_shards"] = shards
        successor = _make(self.about, self.context)
        successor.take_over(self.made, self.now)
        assert self.made.held() == 0
        self.made = successor

    @rule(ours=_ours, remembering=_remembering)
    def reconfigure(self, ours: dict[str, Any], remembering: dict[str, Any]) -> None:
        """Go on with other settings: what is remembered may be forgotten."""
        if "sampling_strategy" in self.about or self.about["num_shards"] > 1:
            ours = ours | {"linked_traces": self.about["linked_traces"]}
        for key in ("decision_cache", "decision_memory"):
            self.about.pop(key, None)
        self.about |= ours | remembering
        self.linked = bool(self.about["linked_traces"])
        self.forgets = True
        self.dry = False
        self.reload(0)

    @invariant()
    def balances(self) -> None:
        """Every span is inside, out or in the ledger."""
        ledger = self.context.ledger
        assert self.sent == self.out + self.made.held() + ledger.sampled_out + ledger.dropped.total()
        if self.dry:
            assert ledger.sampled_out == ledger.dropped.total() == 0

    @invariant()
    def keeps_within_bounds(self) -> None:
        """No more traces and bytes than there is room for."""
        if self.small:
            for part in self.made.parts():
                assert len(part.memory.traces) <= 4
                assert part.memory.bytes <= MIB

    @invariant()
    def says_one_thing_of_a_trace(self) -> None:
        """A decision stands, but for a late error; nothing is told of a trace that was kept."""
        if self.forgets:
            return
        for verdicts in self.told.values():
            kept = [at for at, verdict in enumerate(verdicts) if verdict.decision == "sampled"]
            assert len({verdict.decision for verdict in verdicts[: kept[0] if kept else None]}) <= 1
            assert not kept or kept == [len(verdicts) - 1]
            assert kept in ([], [0]) or verdicts[-1].policy == "rescue_late_errors"

    @invariant()
    def has_a_deadline_while_it_holds(self) -> None:
        """What is held is due sometime, and not before now."""
        due, since = self.made.deadline(), self.made.held_since()
        assert (due is None) <= (self.made.held() == 0)
        assert (since is None) == (self.made.held() == 0)

    def teardown(self) -> None:
        """Shut down: all leaves."""
        if hasattr(self, "made"):
            self._take(self.made.drain(self.now))
            assert self.made.held() == 0
            self.balances()


TestSampling = Sampling.TestCase
TestSampling.settings = settings(max_examples=large(25, 100), stateful_step_count=30)
