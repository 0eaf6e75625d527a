"""`rejected_by`: attempts in which one of these plugins said no, to enough nodes, for such a reason.

What a plugin refused is read from the `plugin rejected` events of its spans (KEP-5927); where a trace has none, from
the scheduler's message, which counts reasons: for those of the default plugins it is known whose they are. What plugins
answer at postFilter, where room is sought for a Pod that is refused already, counts only where `extension_points` names
it. Attempts
that found a node in the end count as well, for there too nodes were refused: put it into an `and` with
`scheduling_result` to have the failed ones only.
"""

from typing import Literal

from pydantic import Field

from podtrail.otlp import POST_FILTER, Decision, Rejection
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.evidence.refusals import refusals_in
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import NO_ATTEMPT, cut, refusals, some

Point = Literal[
    "preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind"
]


class RejectedBy(Evaluator):
    """Says yes when the refusals of one plugin that are asked for come to enough nodes."""

    def __init__(self, plugins: frozenset[str], min_nodes: int, points: frozenset[str], reason: str) -> None:
        self._plugins = plugins
        self._encoded = [plugin.encode() for plugin in sorted(plugins)]
        self._min_nodes = min_nodes
        self._points = points
        self._text = reason
        self._wanted = (
            f"{' or '.join(sorted(plugins)) or 'a plugin'} said no"
            + (f" at {' or '.join(sorted(points))}" if points else "")
            + (f" to {min_nodes} nodes or more" if min_nodes > 1 else "")
            + (f" because of {cut(reason)!r}" if reason else "")
        )
        self.reason = self._wanted

    def vote(self, trace: Evidence) -> Decision:
        """Add up what each plugin refused."""
        return "sampled" if self._found(trace) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell who refused how many nodes, and why."""
        found = self._found(trace)
        if not found:
            return self.reason
        nodes = sum(one.nodes or 0 for one in found)
        reasons = some(list(dict.fromkeys(cut(one.reason) for one in found if one.reason)), "; ")
        who = cut(found[0].plugin) or "the scheduler"
        counted = f" to {nodes} node{'' if nodes == 1 else 's'}" if nodes else ""
        return f"{who} said no{counted}" + (f": {reasons}" if reasons else "")

    def why_not(self, trace: Evidence) -> str:
        """Tell who else refused, or that nobody did."""
        if not trace.attempts:
            return NO_ATTEMPT
        told = refusals_in(trace)
        return f"it is not so that {self._wanted}; " + (f"what was said: {refusals(told)}" if told else "nobody did")

    def _found(self, trace: Evidence) -> list[Rejection]:
        """Return the refusals for which the trace is kept, all of one plugin."""
        if not trace.attempts:
            return []
        of: dict[str, list[Rejection]] = {}
        for one in refusals_in(trace, self._encoded, post_filter=POST_FILTER in self._points):
            if (
                (not self._plugins or one.plugin in self._plugins)
                and (not self._points or one.point in self._points)
                and self._text in one.reason
            ):
                of.setdefault(one.plugin, []).append(one)
        for found in of.values():
            if not self._min_nodes or sum(one.nodes or 0 for one in found) >= self._min_nodes:
                return found
        return []


class Config(PolicyConfig):
    """Settings of `rejected_by`."""

    plugins: tuple[str, ...] = Field((), description="The plugins, one of which must have said no; none: any plugin.")
    min_nodes: int = Field(
        0, ge=0, description="To how many nodes it must have said no; 0: any number, and to the Pod as such."
    )
    extension_points: tuple[Point, ...] = Field(
        (), description="Where it must have said no (preFilter, filter, permit, …); none: anywhere but at postFilter."
    )
    reason: str = Field("", description="What must stand in its reason, for instance `Insufficient nvidia.com/gpu`.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: nothing is asked for.
        """
        if not (self.plugins or self.min_nodes or self.extension_points or self.reason):
            raise ValueError("plugins, min_nodes, extension_points or reason must be given")
        if "" in self.plugins:
            raise ValueError("plugins must have names")
        return RejectedBy(frozenset(self.plugins), self.min_nodes, frozenset(self.extension_points), self.reason)
