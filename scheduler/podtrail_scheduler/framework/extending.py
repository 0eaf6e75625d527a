"""Extenders as the cycles see them: HTTP services of others that filter and score nodes, and may bind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from podtrail_scheduler.objects import Pod

from .diagnosis import Diagnosis

PLUGIN = "Extender"
"""The name under which Pods that extenders ruled out wait: every event of the cluster has them tried again."""


class ExtenderError(Exception):
    """An extender that may not be ignored failed; the text is what the Pod's Event says."""


class Victims(NamedTuple):
    """The Pods that would have to go from a node, and how many of their disruption budgets that violates."""

    pods: tuple[Pod, ...]
    violations: int = 0


PodsOn = Callable[[str], Iterable[Pod] | None]
"""The Pods on a node of the snapshot, None when there is no such node."""


class Extenders(Protocol):
    """All extenders of a configuration, asked as one."""

    filters: bool
    """Whether any of them filters."""
    prioritizes: bool
    """Whether any of them scores."""
    preempts: bool
    """Whether any of them has a say in preemption."""

    async def filter(self, pod: Pod, nodes: Sequence[str], diagnosis: Diagnosis) -> Sequence[str]:
        """Those of `nodes` that they let pass; `diagnosis` is told of the others.

        Raises:
            ExtenderError: one that is not `ignorable` fails.
        """
        ...

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        """What they add to the scores of nodes, weighted; one that fails adds nothing."""
        ...

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn) -> dict[str, Victims]:
        """The candidates that are left of `victims`, by node, and with which victims.

        Raises:
            ExtenderError: one that is not `ignorable` fails.
        """
        ...

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Binds, if one of them does so for this Pod.

        Raises:
            ExtenderError: the one that binds fails.
        """
        ...
