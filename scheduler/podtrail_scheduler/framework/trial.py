"""Running the filters on a supposed state of the cluster, as preemption does and nominated Pods require."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from podtrail_scheduler.objects import Pod

from .cycle_state import CycleState
from .extension_points import FilterPlugin, Plugin, PreFilterExtensions
from .node_info import NodeInfo
from .nominator import Nominator
from .status import Status, error

Asked: TypeAlias = Callable[..., Status | None]
Guard: TypeAlias = Callable[[Plugin, str, Asked], Asked]
"""Makes of a plugin's method at a point what can be called."""


def _as_it_is(plugin: Plugin, point: str, function: Any) -> Any:  # noqa: ARG001
    return function


class FilterTrial:
    """The filters of one profile, and what keeps their state right; without spans, metrics or memory."""

    def __init__(self, nominator: Nominator | None = None) -> None:
        self._nominator = nominator or Nominator()
        self._filters: Sequence[tuple[str, Asked]] = ()
        self._extensions: Sequence[tuple[str, Asked, Asked]] = ()

    def serve(
        self,
        nominator: Nominator,
        filters: Sequence[FilterPlugin],
        extensions: Sequence[PreFilterExtensions],
        guard: Guard = _as_it_is,
    ) -> None:
        """Says which plugins there are; the scheduler calls this once, when all of them have been made."""
        self._nominator = nominator
        self._filters = [(each.name, guard(each, "filter", each.filter)) for each in filters]
        self._extensions = [
            (each.name, guard(each, "addPod", each.add_pod), guard(each, "removePod", each.remove_pod))
            for each in extensions
        ]

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Counts `added` on `node` (which has it already) in what PreFilter wrote for `pod`."""
        for name, add_pod, _ in self._extensions:
            if name not in state.skip_filter:
                status = add_pod(state, pod, added, node)
                if status is not None:
                    return error(f'running AddPod on PreFilter plugin "{name}": {status.message}')
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Counts `removed` out, which `node` no longer has."""
        for name, _, remove_pod in self._extensions:
            if name not in state.skip_filter:
                status = remove_pod(state, pod, removed, node)
                if status is not None:
                    return error(f'running RemovePod on PreFilter plugin "{name}": {status.message}')
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[str, Status] | None:
        """The first plugin that refuses `node` and its answer, None when `pod` fits."""
        for name, fits in self._filters:
            if name not in state.skip_filter:
                status = fits(state, pod, node)
                if status is not None:
                    if not status.rejected:
                        status = error(f'running "{name}" filter plugin: {status.message}')
                    return name, status
        return None

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[str, Status] | None:
        """As `filter`; Pods of at least its priority that are nominated to the node must not stand in the way.

        The Pod must fit with them on the node and without them: they may end up elsewhere.
        """
        ahead = [
            each for each in self._nominator.on(node.name) if each.priority >= pod.priority and each.uid != pod.uid
        ]
        if ahead:
            supposed, beside = node.clone(), state.clone()
            for each in ahead:
                supposed.add(each)
                failed = self.add_pod(beside, pod, each, supposed)
                if failed is not None:
                    return "", failed
            refused = self.filter(beside, pod, supposed)
            if refused is not None:
                return refused
        return self.filter(state, pod, node)
