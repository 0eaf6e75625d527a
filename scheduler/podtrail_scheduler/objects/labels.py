"""Label and node selectors, as the API's types of those names decide them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from .immutable import Immutable


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on one label: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the condition; NotIn also holds without the label, Gt and Lt compare integers."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or len(self.values) != 1 or not _is_integer(value) or not _is_integer(self.values[0]):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == "Gt" else int(value) < bound


@dataclass(frozen=True, slots=True)
class LabelSelector(Immutable):
    """All conditions must hold; one without any matches everything (no selector at all, None, matches nothing)."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` are selected."""
        return self.match_labels.items() <= labels.items() and all(
            each.matches(labels) for each in self.match_expressions
        )

    @property
    def empty(self) -> bool:
        """Whether it has no condition and so selects everything."""
        return not self.match_labels and not self.match_expressions

    @property
    def question(self) -> Hashable:
        """A hashable stand-in: equal for selectors that select the same by the same conditions."""
        return frozenset(self.match_labels.items()), self.match_expressions


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions on labels and on fields (`metadata.name`) that must all hold; a term without any matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether all conditions hold for the node of these labels and this name."""
        if not self.match_expressions and not self.match_fields:
            return False
        if not all(each.matches(labels) for each in self.match_expressions):
            return False
        return not self.match_fields or all(each.matches({"metadata.name": name}) for each in self.match_fields)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """One of its terms must match."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether the node of these labels and this name is selected."""
        return any(term.matches(labels, name) for term in self.terms)
