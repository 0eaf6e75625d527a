"""Choosing among the nodes that fit: the Score plugins, their weights, and a draw among equals."""

from collections.abc import Callable, Mapping, Sequence
from operator import add, itemgetter
from random import Random
from typing import Any

from podtrail_instrumentation import Span

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE, ScorePlugin
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status, error
from podtrail_scheduler.objects import Pod

from .calling import PLUGIN_THRESHOLD, PhaseFailure
from .framework import Framework
from .remembering import UNKNOWN
from .score_shares import ScoreShares


class ScorePhase:
    """The phases preScore and score of one attempt, over the nodes with these indexes."""

    def __init__(self, framework: Framework, state: CycleState, pod: Pod, indexes: Sequence[int]) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._indexes = indexes
        self._pick: Callable[[Sequence[Any]], tuple[Any, ...]] = itemgetter(*indexes)
        """From a column of all nodes the part of these, of which there are at least two."""
        self._nodes: Sequence[NodeInfo] = self._pick(framework.table.infos)
        self._sums: list[int] | None = None
        self._base = 0
        self.by_plugin: dict[str, Sequence[int]] = {}
        """The weighted scores of each plugin, kept when `observed`."""
        self.observed = False
        self._shares: ScoreShares | None = None
        """Of a sampled attempt, from its scores to the draw."""

    def run(self, parent: Span) -> PhaseFailure | None:
        """Both phases; the failure if a plugin had one."""
        return self.pre_score(parent) or self.score(parent)

    def pre_score(self, parent: Span) -> PhaseFailure | None:
        """Prepares the plugins and notes which have nothing to do."""
        caller, state = self._framework.caller, self._state
        phase = caller.start_phase(parent, "preScore")
        refused = None
        skipped: list[str] = []
        for plugin in self._framework.profile.pre_score:
            status = caller.run(phase, plugin, "preScore", plugin.pre_score, state, self._pod, self._nodes)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code is Code.SKIP:
                state.skip_score.add(plugin.name)
                skipped.append(plugin.name)
                continue
            refused = PhaseFailure(plugin.name, error(f'running PreScore plugin "{plugin.name}": {status.message}'))
            break
        caller.end_phase(phase, refused, skipped)
        return refused

    def score(self, parent: Span) -> PhaseFailure | None:
        """Asks each plugin for all nodes, and sums what they say by weight."""
        caller = self._framework.caller
        phase = caller.start_phase(parent, "score")
        shares = self._shares = ScoreShares(phase) if phase.recording else None
        refused = None
        for plugin in self._framework.profile.score:
            if plugin.name in self._state.skip_score:
                continue
            began = caller.clock.now()
            nests = caller.nests(plugin.name, "score")
            span = caller.start_plugin(phase, plugin.name, "score", began) if nests and phase.recording else None
            refused = self._run(span or (phase if nests else None), plugin)
            now = caller.clock.now()
            if phase.recording:
                told = {"scheduler.nodes.evaluated": len(self._nodes), "scheduler.duration_ns": now - began}
                failure = refused.status.message if refused is not None else ""
                if span is not None:
                    span.set_attributes(told)
                    if failure:
                        span.fail(failure)
                    span.end(PLUGIN_THRESHOLD)
                else:
                    phase.leaf(*caller.named(plugin.name, "score"), began, now, told, failure=failure)
            if span is None and now - began >= PLUGIN_THRESHOLD:
                caller.note_long(phase, plugin.name, "score", began, now)
            caller.measure(self._state, plugin.name, "score", refused.status if refused is not None else None, began)
            if refused is not None:
                break
        if shares is None or refused is not None:
            self._shares = None
            caller.end_phase(phase, refused)
        else:
            shares.over = caller.clock.now()
        return refused

    def add(self, extra: Mapping[str, int]) -> None:
        """Adds to the scores of nodes, by name."""
        added = [extra.get(node.name, 0) for node in self._nodes]
        if self._shares is not None:
            self._shares.extenders(added)
        self._sums = list(map(add, self.sums(), added))
        self._base = 0

    def sums(self) -> list[int]:
        """The weighted sum of each node, in the order of the nodes."""
        base = self._base
        if self._sums is None:
            return [base] * len(self._nodes)
        return [base + each for each in self._sums] if base else self._sums

    @property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return [node.name for node in self._nodes]

    def best(self, random: Random) -> str:
        """The node with the highest sum, drawn from those that have it; the span `score` ends with why it is that."""
        winner, ties = self._draw(random)
        shares = self._shares
        if shares is not None:
            shares.span.set_attributes(shares.attributes(self._nodes, self._sums or (), self._base, winner, ties))
            self._framework.caller.end_phase(shares.span, at=shares.over)
        return self._nodes[winner].name

    def _draw(self, random: Random) -> tuple[int, int]:
        """The place of one with the highest sum, and how many have it."""
        if self._sums is None:
            return random.randrange(len(self._nodes)), len(self._nodes)
        highest = max(self._sums)
        equals = self._sums.count(highest)
        if equals == 1:
            return self._sums.index(highest), 1
        places = [place for place, each in enumerate(self._sums) if each == highest]
        return places[random.randrange(equals)], equals

    def _run(self, span: Span | None, plugin: ScorePlugin) -> PhaseFailure | None:
        name = plugin.name
        scores = self._scores(span, plugin)
        if isinstance(scores, Status):
            return PhaseFailure(name, error(f"running Score plugins: {scores.message}"))
        normalizer = self._framework.profile.normalizers.get(name)
        if normalizer is not None:
            answer = self._framework.caller.call(
                span, plugin, "score", 0, normalizer.normalize, self._state, self._pod, self._nodes, scores
            )
            if isinstance(answer, Status):
                text = f'running Normalize on Score plugins: plugin "{name}" failed with: {answer.message}'
                return PhaseFailure(name, error(text))
            if len(answer) != len(scores):
                text = f'plugin "{name}" normalized {len(scores)} scores to {len(answer)}'
                return PhaseFailure(name, error(f"running Normalize on Score plugins: {text}"))
            scores = answer
        lowest, highest = min(scores), max(scores)
        if lowest < 0 or highest > MAX_SCORE:
            wrong = next(score for score in scores if not 0 <= score <= MAX_SCORE)
            text = f'plugin "{name}" returns an invalid score {wrong}, it should in the range of [0, 100]'
            return PhaseFailure(
                name, error(f"applying score defaultWeights on Score plugins: {text} after normalizing")
            )
        self._count(name, scores, lowest, highest)
        return None

    def _count(self, name: str, scores: Sequence[int], lowest: int, highest: int) -> None:
        weight = self._framework.profile.weights[name]
        if self._shares is not None:
            self._shares.plugin(name, weight, scores, highest)
        if self.observed:
            self.by_plugin[name] = [weight * score for score in scores]
        if lowest == highest:
            self._base += weight * lowest
            return
        weighted = [weight * score for score in scores] if weight != 1 else list(scores)
        self._sums = weighted if self._sums is None else list(map(add, self._sums, weighted))

    def _scores(self, span: Span | None, plugin: ScorePlugin) -> Sequence[int] | Status:
        local = self._framework.profile.local_scores.get(plugin.name)
        if local is None:
            return self._ask(span, plugin, self._nodes)
        key = self._framework.caller.key(plugin, "score", local.score_key, self._pod)
        if isinstance(key, Status):
            return key
        column = self._framework.memory.column((plugin.name, "score", key))
        known: Sequence[Any] = self._pick(column)
        if UNKNOWN not in known:
            return known
        asked = [place for place, each in enumerate(known) if each is UNKNOWN]
        answers = self._ask(span, plugin, [self._nodes[place] for place in asked])
        if isinstance(answers, Status):
            return answers
        for place, answer in zip(asked, answers, strict=True):
            column[self._indexes[place]] = answer
        return self._pick(column)

    def _ask(self, span: Span | None, plugin: ScorePlugin, nodes: Sequence[NodeInfo]) -> Sequence[int] | Status:
        caller = self._framework.caller
        columns = self._framework.profile.column_scores.get(plugin.name)
        if columns is not None:
            return caller.call(span, plugin, "score", len(nodes), columns.score_nodes, self._state, self._pod, nodes)
        return caller.call(span, plugin, "score", len(nodes), _one_by_one, plugin, self._state, self._pod, nodes)


def _one_by_one(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
    score = plugin.score
    return [score(state, pod, node) for node in nodes]
