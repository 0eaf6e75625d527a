"""The base of all policies: settings (`PolicyConfig`) that make what votes on traces (`Evaluator`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from podtrail.component import Context
from podtrail.config.types import Model, WarningPath
from podtrail.otlp import Decision
from podtrail.state import StateError, StateShape
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.probability import ALWAYS


class PolicyMemory(Protocol):
    """What a policy remembers of traces before, for a time."""

    def deadline(self) -> int | None:
        """Return when the first of it is too old, Unix nanoseconds; None while it is empty."""

    def expire(self, now: int) -> None:
        """Forget what is too old."""


class NoVote(Exception):
    """A policy can't vote on a trace; the text says why."""


class Evaluator(ABC):
    """Votes on traces. Deterministic: the same traces at the same pipeline times get the same votes."""

    reads: Reads = Reads()
    """The span fields it reads; none when it can do without decoding."""
    reason: str = ""
    """What it says yes to, in words: `a span has status ERROR`."""
    threshold: int = ALWAYS
    """With what threshold it chooses, if by chance: `podtrail_processors.probability`."""
    dynamic: bool = False
    """Whether `threshold_of` differs from trace to trace."""
    stateful: bool = False
    """Whether its vote depends on traces before, or on all spans being there: then it can't judge parts of a trace."""

    by_tick: bool = False
    """Whether it chooses by randomness among the traces that fall due together, where trace states tell of that:
    then it is shown them all (`weigh`, `settle`) ahead of its votes on them."""

    def weigh(self, trace: Evidence) -> None:  # noqa: B027 - most judge a trace by itself
        """Take note of a trace that it will be asked about. NoVote when it could not vote on it."""

    def settle(self, now: int) -> None:  # noqa: B027
        """Choose among what was weighed since the last time."""

    def attach(self, context: Context, name: str) -> None:  # noqa: B027 - most need nothing
        """Take what it needs of the sampler it votes in; called once, before the first vote. `name`: its own there."""

    def take_over(self, predecessor: "Evaluator") -> None:  # noqa: B027 - most remember nothing
        """On reload: take what `predecessor` remembers, a policy of the same class with perhaps other settings."""

    def learners(self) -> Sequence[Callable[[Evidence], None]]:
        """Return what has to be shown every trace ahead of the votes: it learns also from those it is not asked about.

        Of a policy that is made of others: theirs.
        """
        return ()

    def memories(self) -> "Sequence[PolicyMemory]":
        """Return what forgets with time, though nothing comes. Of a policy that is made of others: theirs."""
        return ()

    state_version: int = 1
    """The version of what `save_state` returns."""

    def save_state(self) -> Any:
        """Return what it remembers as plain values that do not change afterwards; None where it remembers nothing."""
        return None

    def restore_state(self, version: int, state: Any) -> None:  # noqa: ARG002
        """Remember what was saved.

        Raises:
            StateError: it can't, and remembers nothing.
        """
        raise StateError("it remembers nothing")

    may_fail: bool = False
    """Whether it may have no vote (`NoVote`)."""
    gates: frozenset[Sought] | None = None
    """It says `not_sampled` where none of these is met, and changes nothing by that; None: it has to be asked."""

    @abstractmethod
    def vote(self, trace: Evidence) -> Decision:
        """Return what is to become of a trace as far as this policy is concerned. NoVote when that can't be said."""

    def because(self, trace: Evidence) -> str:  # noqa: ARG002 - for policies that can be more exact
        """Return why it said yes to this trace, in words.

        Asked right after the vote, or much later of the same spans: it may neither depend on the last vote nor change
        what comes.
        """
        return self.reason

    def why_not(self, trace: Evidence) -> str:  # noqa: ARG002
        """Return why it said no to this trace, in words; asked only much later, of evidence that `tells`."""
        return f"it is not so that {self.reason}"

    def revote(self, trace: Evidence) -> Decision | None:
        """Return what it says of this trace, changing nothing; None when that depends on more than the trace.

        NoVote when it can't vote on it.
        """
        return None if self.stateful else self.vote(trace)

    def threshold_of(self, trace: Evidence) -> int:  # noqa: ARG002
        """Return with what threshold it chose this trace, right after its vote."""
        return self.threshold


class NamedEvaluator(NamedTuple):
    """A policy under the name it has in a list."""

    name: str
    policy: Evaluator


def carry_over(after: Sequence[NamedEvaluator], before: Sequence[NamedEvaluator]) -> None:
    """On reload: have policies go on from what those of the same name and class remember."""
    predecessors = dict(before)
    for name, policy in after:
        predecessor = predecessors.get(name)
        if type(predecessor) is type(policy):
            policy.take_over(predecessor)


_PARTS: Final = StateShape[tuple[tuple[int, Any], ...]](tuple[tuple[int, Any], ...])


def saved_parts(policies: Iterable[Evaluator]) -> Any:
    """Return what the parts of a policy remember, in order; None where none does."""
    states = [(policy.state_version, policy.save_state()) for policy in policies]
    return tuple(states) if any(state is not None for _, state in states) else None


def restore_parts(policies: Sequence[Evaluator], saved: Any) -> None:
    """Have the parts of a policy remember what was saved.

    Raises:
        StateError: one can't.
    """
    states = _PARTS.read(() if saved is None else saved)
    if states and len(states) != len(policies):
        raise StateError("it had other parts")
    for policy, (version, state) in zip(policies, states, strict=False):
        if state is not None:
            policy.restore_state(version, state)


class PolicyConfig(Model):
    """The settings of one policy type, under the type's name in the policy."""

    @abstractmethod
    def create(self) -> Evaluator:
        """Return the policy with these settings.

        Raises:
            ValueError: they can't be met.
        """

    def memory_bound(self) -> int:
        """Return the bytes that the policy may remember; parts of it that are policies themselves are not counted."""
        return 0

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant, with the path below this block; asked where the block is in use."""
        return []


def label_of(component_id: str, policy: str) -> str:
    """Return the value of the label `policy`: with the component's name before it if it has one."""
    _, _, name = component_id.partition("/")
    return f"{name}.{policy}" if name else policy
