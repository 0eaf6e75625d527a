"""How a `python` policy votes: errors contained, time kept."""

from typing import Any, Final, NamedTuple

from podtrail.component import Context
from podtrail.config.types import MINUTE, format_duration
from podtrail.otlp import Decision, Group, frame, split
from podtrail.policy import TraceView
from podtrail.state import KeepsState, StateError, StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.policies.python_loading import Loaded, told
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, NoVote, label_of

_QUIET, _MOST_QUIET = MINUTE, 60 * MINUTE
"""Between two lines about failures: twice as long each time."""
_LONGEST_REASON = 500


class PythonEvaluator(Evaluator):
    """Asks the function, or the method `vote` of the object; what is neither bool, text nor None is no vote."""

    may_fail = True

    def __init__(self, target: str, loaded: Loaded, budget: int, overdraft: int) -> None:
        self.reason = f"{target} says yes"
        self.stateful = loaded.stateful
        self._target = target
        self._ask = loaded.vote
        self._keeper: KeepsState | None = loaded.keeper
        self._budget = budget
        self._overdraft = overdraft
        self._overdrawn = 0
        self._off = False
        self._told: tuple[bytes, int, str] = (b"", 0, "")
        """The last trace that it said yes to, when, and why."""
        self._quiet_until = self._unlogged = 0
        self._quiet = 0
        self.attach(Context(id="tail_sampling"), target)

    def attach(self, context: Context, name: str) -> None:
        """Take log, metrics and stopwatch."""
        self._name = name
        self._log = context.log
        self._stopwatch = context.stopwatch
        self._label = label_of(context.id, name)
        self._errors = context.metrics.counter(
            "podtrail_python_policy_errors_total", "Votes of a Python policy that raised an exception.", ("policy",)
        )
        context.metrics.gauge(
            "podtrail_python_policy_switched_off",
            "1 for a Python policy that was switched off because it kept exceeding its budget.",
            ("policy",),
            combine=max,
        ).read_from(lambda: int(self._off), self._label)

    def save_state(self) -> Any:
        """Return its own state, and what it said last.

        Raises:
            StateError: it may remember something and can't save that.
        """
        if self.stateful and self._keeper is None:
            raise StateError(f"{self._target} remembers traces and has neither save_state nor restore_state")
        own = None
        if self._keeper is not None:
            own = _saved_by(self._target, self._keeper)
        return _SavedVotes(self._told, self._overdrawn, self._off, own)

    def restore_state(self, version: int, state: Any) -> None:
        """Have it go on from its state.

        Raises:
            StateError: it can't, or fails to.
        """
        known_version(version, 1)
        saved = _SHAPE.read(state)
        if saved.own is not None:
            if self._keeper is None:
                raise StateError(f"{self._target} has no restore_state")
            try:
                self._keeper.restore_state(*saved.own)
            except Exception as error:  # code that is not ours must not end the pipeline
                raise StateError(f"{self._target}.restore_state failed: {told(error)}") from error
        self._told, self._overdrawn, self._off = saved.told, saved.overdrawn, saved.off

    def vote(self, trace: Evidence) -> Decision:
        """Ask it for its vote on a trace.

        Raises:
            NoVote: it fails, or is switched off.
        """
        if self._off:
            raise NoVote(f"{self._target} is switched off: it kept taking longer than {format_duration(self._budget)}")
        before = self._stopwatch()
        try:
            reason = self._asked(trace)
        except NoVote as failed:
            self._note(failed, trace.now)
            raise
        finally:
            self._charge(self._stopwatch() - before)
        if reason is None:
            return "not_sampled"
        self._told = (trace.trace_id, trace.now, reason)
        return "sampled"

    def because(self, trace: Evidence) -> str:
        """Repeat the reason it gave; of a trace longer ago only a function is asked again."""
        trace_id, now, reason = self._told
        if (trace_id, now) == (trace.trace_id, trace.now):
            return reason
        if self.stateful or self._off:
            return self.reason
        try:
            return self._asked(trace) or self.reason
        except NoVote as error:
            return str(error)

    def why_not(self, trace: Evidence) -> str:  # noqa: ARG002 - it gives reasons only for yes
        """Tell that it said no."""
        return f"{self._target} said no"

    def revote(self, trace: Evidence) -> Decision | None:
        """Ask again what remembers nothing."""
        if self.stateful or self._off:
            return None
        return "not_sampled" if self._asked(trace) is None else "sampled"

    def _asked(self, trace: Evidence) -> str | None:
        """Return why it says yes, None when it says no. NoVote when it fails."""
        try:
            answer = self._ask(_view(trace))
        except (Exception, SystemExit) as error:  # code that is not ours must not end the pipeline
            raise NoVote(f"{self._target} failed: {told(error)}") from error
        match answer:
            case None | False:
                return None
            case True:
                return self.reason
            case str():  # which may have halves of characters in it
                return answer[:_LONGEST_REASON].encode(errors="replace").decode() or None
        raise NoVote(f"{self._target} returned {type(answer).__name__} instead of a bool, a reason or None")

    def _note(self, failed: NoVote, now: int) -> None:
        """Count a failure; log it, the first one with its traceback, unless one was logged a moment ago."""
        self._errors.add(1, self._label)
        if now < self._quiet_until:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last such line)" if self._unlogged else ""
        self._log.error("policy %s: %s%s", self._name, failed, more, exc_info=None if self._quiet else failed.__cause__)
        self._quiet = min(2 * self._quiet or _QUIET, _MOST_QUIET)
        self._quiet_until, self._unlogged = now + self._quiet, 0

    def _charge(self, took: int) -> None:
        """Switch it off when it has overdrawn its budget too far."""
        if not self._budget:
            return
        self._overdrawn = max(0, self._overdrawn + took - self._budget)
        if self._overdrawn > self._overdraft:
            self._off = True
            self._log.error(
                "policy %s is SWITCHED OFF until the configuration is loaded anew: %s keeps taking longer than its "
                "budget of %s a trace (%s in all, the last one took %s)",
                *(self._name, self._target, format_duration(self._budget)),
                *(format_duration(self._overdrawn), format_duration(took)),
            )


class _SavedVotes(NamedTuple):
    told: tuple[bytes, int, str]
    overdrawn: int
    off: bool
    own: tuple[int, Any] | None


_SHAPE: Final = StateShape[_SavedVotes](_SavedVotes)


def _saved_by(target: str, keeper: KeepsState) -> tuple[int, Any]:
    try:
        return keeper.state_version, keeper.save_state()
    except Exception as error:  # code that is not ours must not end the pipeline
        raise StateError(f"{target}.save_state failed: {told(error)}") from error


def _view(trace: Evidence) -> TraceView:
    if len(trace.headers) == 1:
        (header,) = trace.headers
        return TraceView((Group(*header, trace.trace_id, trace.raw, trace.span_count),), trace.now)
    raws, groups, start = split(trace.raw), [], 0
    for header, spans in trace.under_headers():
        end = start + len(spans)
        groups.append(Group(*header, trace.trace_id, frame(raws[start:end]), len(spans)))
        start = end
    return TraceView(tuple(groups), trace.now)
