"""What keeps state across restarts, and how a saved state is checked before it is used.

A saved state is made of plain values: None, bool, int, float, str, bytes, tuples or lists, and dicts with str keys. It
is read back with tuples in place of lists.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


class StateError(ValueError):
    """A state can't be restored: it is damaged, or of an unknown version. The text says which."""


class PartlyRestored(StateError):
    """Parts of a state could not be restored and begin empty; everything else was restored."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Name the parts, each with the reason."""
        super().__init__("; ".join(problems))
        self.problems = problems


@runtime_checkable
class KeepsState(Protocol):
    """A component whose state survives a restart."""

    state_version: int
    """The version of what `save_state` returns. Raise it whenever that changes, and read the earlier ones as well."""

    def save_state(self) -> Any:
        """Return the state as plain values that do not change afterwards: they are written later, in a thread."""

    def restore_state(self, version: int, state: Any) -> None:
        """Take a saved state; called at most once, before anything else.

        Raises:
            StateError: it is of an unknown version, or it is damaged. Nothing was taken then.
        """


class StateShape(Generic[T]):
    """The type that a saved state must have. Checking is compiled when it is first needed."""

    def __init__(self, form: Any) -> None:
        """Expect a type as pydantic describes it: NamedTuples, tuples, basic types."""
        self._form = form

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._form)

    def read(self, state: Any) -> T:
        """Return a state with its NamedTuples made again.

        Raises:
            StateError: it has another form.
        """
        try:
            return self._adapter.validate_python(state)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise StateError(f"it is damaged: {first['msg']} at {place or 'the top'}") from None


def known_version(version: int, *known: int) -> None:
    """Check that a version of a state is known.

    Raises:
        StateError: it is not.
    """
    if version not in known:
        raise StateError(f"its version is {version}, known are {', '.join(map(str, known))}")
