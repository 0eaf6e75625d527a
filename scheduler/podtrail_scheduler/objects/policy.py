"""Objects that say something about many Pods: namespaces, disruption budgets, and what selects Pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .immutable import Immutable
from .keys import ByName, ByNamespaceAndName
from .labels import LabelSelector


@dataclass(frozen=True, slots=True)
class Namespace(Immutable, ByName):
    """A namespace and its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget(ByNamespaceAndName):
    """How many more of the selected Pods may be disrupted (`status.disruptionsAllowed`)."""

    name: str
    namespace: str
    selector: LabelSelector | None = None
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    """Names of Pods whose eviction is under way and counted already."""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class PodSelecting:
    """A Service, ReplicationController, ReplicaSet or StatefulSet: what default spreading keeps apart."""

    kind: str
    name: str
    namespace: str
    selector: LabelSelector | None = None
    resource_version: str = ""

    @property
    def key(self) -> str:
        """Kind, namespace and name: the kinds share this type."""
        return f"{self.kind}/{self.namespace}/{self.name}"
