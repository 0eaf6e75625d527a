# ruff: noqa: RUF009 - `described` makes the field that a dataclass wants there
"""The parts of the core API that args contain: what of them is well-formed. Plugins are handed the JSON itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from .wire import Int32, described

NodeSelectorOperator = Annotated[str, "v1.NodeSelectorOperator"]
LabelSelectorOperator = Annotated[str, "v1.LabelSelectorOperator"]


@dataclass(frozen=True, slots=True)
class NodeSelectorRequirement:
    """A condition on one label or field of a node."""

    key: str = described("", "Label or field.")
    operator: NodeSelectorOperator = described("", "`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.")
    values: tuple[str, ...] = described((), "What it is compared with.")


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = described((), "Conditions on labels.")
    match_fields: tuple[NodeSelectorRequirement, ...] = described((), "Conditions on fields (`metadata.name`).")


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = described((), "The terms.")


@dataclass(frozen=True, slots=True)
class PreferredSchedulingTerm:
    """A term that is worth something when it matches."""

    weight: Int32 = described(0, "1 to 100.")
    preference: NodeSelectorTerm = described(NodeSelectorTerm(), "The term.")


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Which nodes are wanted."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = described(None, "Filters.")
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = described((), "Scores.")


@dataclass(frozen=True, slots=True)
class LabelSelectorRequirement:
    """A condition on one label."""

    key: str = described("", "Label.")
    operator: LabelSelectorOperator = described("", "`In`, `NotIn`, `Exists` or `DoesNotExist`.")
    values: tuple[str, ...] = described((), "What it is compared with.")


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Labels that objects have."""

    match_labels: Mapping[str, str] | None = described(None, "Labels and their values.")
    match_expressions: tuple[LabelSelectorRequirement, ...] = described((), "Conditions on labels.")
