"""What plugins leave for themselves and each other within one attempt."""

from typing import Protocol, TypeVar, cast

Value = TypeVar("Value")


class Copyable(Protocol):
    """A value that is changed in place (by `add_pod`, `remove_pod`) and so must be copied before something is tried."""

    def clone(self) -> object:
        """A copy that shares nothing that changes."""
        ...


class CycleState:
    """Values by their type, so that a reader knows what it gets, and the plugins that asked to be skipped."""

    __slots__ = ("_values", "binding_annotations", "measures_plugins", "skip_filter", "skip_pre_bind", "skip_score")

    def __init__(self, *, measures_plugins: bool = False) -> None:
        self._values: dict[type, object] = {}
        self.measures_plugins = measures_plugins
        """Whether each plugin's calls are measured in this attempt, to the end of its binding cycle."""
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.skip_pre_bind: set[str] = set()
        self.binding_annotations: dict[str, str] = {}
        """What the binder writes on the Pod with the same request that binds it."""

    def write(self, value: object) -> None:
        """Keeps `value`, in place of an earlier one of its type."""
        self._values[type(value)] = value

    def read(self, kind: type[Value]) -> Value:
        """The value of type `kind`.

        Raises:
            KeyError: its plugin did not run.
        """
        value = self._values[kind]
        assert isinstance(value, kind)
        return value

    def clone(self) -> "CycleState":
        """A copy for a trial: what is changed in it leaves this state as it is."""
        copy = CycleState(measures_plugins=self.measures_plugins)
        copy._values = {
            kind: cast("Copyable", value).clone() if hasattr(value, "clone") else value
            for kind, value in self._values.items()
        }
        copy.skip_filter = set(self.skip_filter)
        copy.skip_score = set(self.skip_score)
        return copy
