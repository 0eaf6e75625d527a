"""`composite`: several policies in order, each with its share of a number of spans a second."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import Field

from podtrail.component import Context
from podtrail.config.mistakes import below, each
from podtrail.config.types import SECOND, Model, WarningPath
from podtrail.otlp import Decision
from podtrail.state import StateError, StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies import conjunction
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.policies.lenient import Int64, Texts
from podtrail_processors.tail_sampling.voting.evaluator import (
    Evaluator,
    NamedEvaluator,
    PolicyConfig,
    PolicyMemory,
    carry_over,
    restore_parts,
    saved_parts,
)


@dataclass(slots=True)
class Allotted:
    """A policy with what it may keep in a second."""

    name: str
    policy: Evaluator
    spans_per_second: int
    spent: int = 0


class _SavedComposite(NamedTuple):
    second: int
    spent: tuple[int, ...]
    yes: int | None
    yes_to: bytes
    parts: Any


_SHAPE: Final = StateShape[_SavedComposite](_SavedComposite)


class Composite(Evaluator):
    """Asks its policies in order; the first that says yes decides, as long as its budget of this second lasts.

    As in the Collector there is no falling through to the next one when it does not, a trace that is too large for
    what is left takes nothing, and the total is compared with what that one policy has kept, never with the sum.
    """

    def __init__(self, total: int, parts: Sequence[Allotted]) -> None:
        self.reads = Reads.union(part.policy.reads for part in parts)
        self.dynamic = any(part.policy.dynamic for part in parts)
        self.stateful = any(part.policy.stateful for part in parts)
        self.may_fail = any(part.policy.may_fail for part in parts)
        self.reason = f"it is within {total} spans a second and " + (
            " or ".join(part.policy.reason for part in parts) or "no condition is given"
        )
        self._total = total
        self._parts = parts
        self._second = 0
        self._yes: Allotted | None = None
        self._yes_to = b""

    def vote(self, trace: Evidence) -> Decision:
        """Ask the policies and spend the budget of the one that says yes."""
        second = trace.now // SECOND
        if second != self._second:
            self._second = second
            for part in self._parts:
                part.spent = 0
        for part in self._parts:
            if part.policy.vote(trace) == "sampled":
                spent = part.spent + trace.total_spans
                if spent > part.spans_per_second or spent > self._total:
                    return "not_sampled"
                part.spent = spent
                self._yes, self._yes_to = part, trace.trace_id
                trace.composite_policy = part.name
                return "sampled"
        return "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell which of its policies said yes, and why."""
        part = self._yes if self._yes_to == trace.trace_id else self._first_yes(trace)
        return f"{part.name}: {part.policy.because(trace)}" if part else self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell why each of its policies said no, or whose budget was spent."""
        said: list[str] = []
        for part in self._parts:
            again = part.policy.revote(trace)
            if again is None:
                return f"its policies said no, or there was no room for {trace.total_spans} spans within their budgets"
            if again == "sampled":
                because, most = part.policy.because(trace), min(part.spans_per_second, self._total)
                return f"{part.name}: {because}, but there was no room for {trace.total_spans} spans of {most} a second"
            said.append(f"{part.name}: {part.policy.why_not(trace)}")
        return "; ".join(said) or "it has no policies"

    def revote(self, trace: Evidence) -> Decision | None:
        """Ask those that can be asked again; whether there was room is not known any more."""
        said_no = all(part.policy.revote(trace) == "not_sampled" for part in self._parts)
        return "not_sampled" if said_no else None

    def threshold_of(self, trace: Evidence) -> int:
        """Return the threshold of the policy that said yes, if it is of its own making."""
        part = self._yes
        return part.policy.threshold_of(trace) if part and part.policy.dynamic else self.threshold

    def learners(self) -> Sequence[Callable[[Evidence], None]]:
        """Return those of its policies."""
        return [learner for part in self._parts for learner in part.policy.learners()]

    def memories(self) -> Sequence[PolicyMemory]:
        """Return those of its policies."""
        return [memory for part in self._parts for memory in part.policy.memories()]

    def attach(self, context: Context, name: str) -> None:
        """Attach its policies, under their own names below this one's."""
        for part in self._parts:
            part.policy.attach(context, f"{name}.{part.name}")

    def save_state(self) -> Any:
        """Return what its policies remember and have spent."""
        yes = None if self._yes is None else self._parts.index(self._yes)
        spent = tuple([part.spent for part in self._parts])
        return _SavedComposite(self._second, spent, yes, self._yes_to, saved_parts(part.policy for part in self._parts))

    def restore_state(self, version: int, state: Any) -> None:
        """Go on from what its policies remembered and had spent.

        Raises:
            StateError: it had other parts, or one can't be restored.
        """
        known_version(version, 1)
        saved = _SHAPE.read(state)
        if len(saved.spent) != len(self._parts) or saved.yes not in (None, *range(len(self._parts))):
            raise StateError("it had other parts")
        restore_parts([part.policy for part in self._parts], saved.parts)
        self._second, self._yes_to = saved.second, saved.yes_to
        self._yes = None if saved.yes is None else self._parts[saved.yes]
        for part, spent in zip(self._parts, saved.spent, strict=True):
            part.spent = spent

    def take_over(self, predecessor: Evaluator) -> None:
        """Go on from what the predecessor's policies remember and have spent."""
        assert isinstance(predecessor, Composite)
        carry_over(self._named(), predecessor._named())
        spent = {part.name: part.spent for part in predecessor._parts}
        self._second = predecessor._second
        for part in self._parts:
            part.spent = spent.get(part.name, 0)

    def _named(self) -> Sequence[NamedEvaluator]:
        return [NamedEvaluator(part.name, part.policy) for part in self._parts]

    def _first_yes(self, trace: Evidence) -> Allotted | None:
        """Return the policy that said yes, as far as that can be found out."""
        for part in self._parts:
            again = part.policy.revote(trace)
            if again != "not_sampled":
                return part if again else None
        return None


class CompositePart(Leaf):
    """A policy within `composite`."""

    and_: conjunction.AndConfig = Field(
        conjunction.AndConfig(), alias="and", description="Traces that several policies agree on."
    )


class RateAllocation(Model):
    """What one of the policies may keep."""

    policy: str = Field("", description="The name of the policy.")
    percent: Int64 = Field(0, description="Its share of the total; 0: as much as any other.")


class Config(PolicyConfig):
    """Settings of `composite`."""

    max_total_spans_per_second: Int64 = Field(0, description="How many spans are kept a second.")
    policy_order: Texts = Field(
        (), description="Accepted from the Collector, where nothing depends on it: `composite_sub_policy` is the order."
    )
    composite_sub_policy: tuple[CompositePart, ...] = Field(
        (), description="The policies, the first to be asked first."
    )
    rate_allocation: tuple[RateAllocation, ...] = Field(
        (), description="The shares of the policies; those left out have as much as any other."
    )

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: a part can't be made.
        """
        total = self.max_total_spans_per_second
        percents = {share.policy: share.percent for share in self.rate_allocation}

        def allotted(part: CompositePart) -> Allotted:
            percent = percents.get(part.name, 0)
            budget = percent / 100 * total if percent > 0 else total / len(self.composite_sub_policy)
            return Allotted(part.name, part.create(), int(budget))

        with below("composite_sub_policy"):
            return Composite(total, each(allotted, self.composite_sub_policy))

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        found: list[tuple[WarningPath, str]] = []
        names = [part.name for part in self.composite_sub_policy]
        if self.policy_order and list(self.policy_order) != names:
            found.append((("policy_order",), "has no effect: the policies are asked in the order of their list"))
        if self.max_total_spans_per_second <= 0:
            found.append((("max_total_spans_per_second",), "at no rate it keeps nothing"))
        if not names:
            found.append((("composite_sub_policy",), "without policies it keeps nothing"))
        for at, share in enumerate(self.rate_allocation):
            if share.policy not in names:
                found.append((("rate_allocation", at, "policy"), "has no effect: no policy of the list has this name"))
        return found
