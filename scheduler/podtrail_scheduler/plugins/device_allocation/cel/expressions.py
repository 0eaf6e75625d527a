"""Expressions as trees that have a value for given variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .functions import call_function, call_method, checked
from .operators import arithmetic, contains, find, ordered
from .values import NONE, CelError, Optional, equal, kind_of

Variables = Mapping[str, object]


class Expression(Protocol):
    """Has a value."""

    def value(self, variables: Variables) -> object:
        """The value.

        Raises:
            CelError: there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class CelLiteral:
    """Itself."""

    constant: object

    def value(self, variables: Variables) -> object:  # noqa: ARG002
        """Whatever the variables."""
        return self.constant


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str

    def value(self, variables: Variables) -> object:
        """What the variable is.

        Raises:
            CelError: there is no such variable.
        """
        if self.name not in variables:
            raise CelError(f"undeclared reference to '{self.name}'")
        return variables[self.name]


@dataclass(frozen=True, slots=True)
class CelList:
    """A list literal."""

    items: Sequence[Expression]

    def value(self, variables: Variables) -> object:
        """The values of the items."""
        return [item.value(variables) for item in self.items]


@dataclass(frozen=True, slots=True)
class At:
    """A field or an index; `optional`: one that may be missing."""

    operand: Expression
    key: Expression
    optional: bool = False

    def value(self, variables: Variables) -> object:
        """What is there; of an optional operand, an optional.

        Raises:
            CelError: nothing is there.
        """
        operand, key = self.operand.value(variables), self.key.value(variables)
        if isinstance(operand, Optional):
            return NONE if not operand.present else find(operand.value, key)
        found = find(operand, key)
        if self.optional:
            return found
        if not found.present:
            kind = "no such key" if isinstance(operand, Mapping) else "index out of bounds"
            raise CelError(f"{kind}: {key}")
        return found.value

    def present(self, variables: Variables) -> bool:
        """Whether it is there."""
        operand = self.operand.value(variables)
        if isinstance(operand, Optional):
            operand = operand.value if operand.present else {}
        return find(operand, self.key.value(variables)).present


@dataclass(frozen=True, slots=True)
class Has:
    """`has(a.b)`."""

    field: At

    def value(self, variables: Variables) -> object:
        """Whether the field is there."""
        return self.field.present(variables)


@dataclass(frozen=True, slots=True)
class Junction:
    """`&&` and `||`: decided by one side if the other has no value."""

    left: Expression
    right: Expression
    decisive: bool
    """The value of a side that decides alone: false for `&&`, true for `||`."""

    def value(self, variables: Variables) -> object:
        """The truth."""
        trouble: CelError | None = None
        for side in (self.left, self.right):
            try:
                if boolean(side.value(variables)) is self.decisive:
                    return self.decisive
            except CelError as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble
        return not self.decisive


@dataclass(frozen=True, slots=True)
class Conditional:
    """`a ? b : c`."""

    condition: Expression
    then: Expression
    otherwise: Expression

    def value(self, variables: Variables) -> object:
        """Only the side that is chosen is looked at."""
        return (self.then if boolean(self.condition.value(variables)) else self.otherwise).value(variables)


@dataclass(frozen=True, slots=True)
class Unary:
    """`!a` and `-a`."""

    sign: str
    operand: Expression

    def value(self, variables: Variables) -> object:
        """The opposite.

        Raises:
            CelError: the operand has none.
        """
        operand = self.operand.value(variables)
        if self.sign == "!":
            return not boolean(operand)
        if isinstance(operand, bool) or not isinstance(operand, (int, float)):
            raise CelError("no such overload: -_")
        return checked(-operand)


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two values."""

    sign: str
    left: Expression
    right: Expression

    def value(self, variables: Variables) -> object:
        """The result."""
        left, right = self.left.value(variables), self.right.value(variables)
        match self.sign:
            case "==":
                return equal(left, right)
            case "!=":
                return not equal(left, right)
            case "in":
                return contains(right, left)
            case "<" | "<=" | ">" | ">=":
                return ordered(self.sign, left, right)
        return arithmetic(self.sign, left, right)


@dataclass(frozen=True, slots=True)
class CelCall:
    """A function, or a method of `target`."""

    name: str
    target: Expression | None
    arguments: Sequence[Expression]

    def value(self, variables: Variables) -> object:
        """What it returns."""
        arguments = [argument.value(variables) for argument in self.arguments]
        if self.target is None:
            return call_function(self.name, arguments)
        return call_method(self.name, self.target.value(variables), arguments)


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`."""

    name: str
    bound: Expression
    body: Expression

    def value(self, variables: Variables) -> object:
        """The body's value with the name known."""
        return self.body.value({**variables, self.name: self.bound.value(variables)})


@dataclass(frozen=True, slots=True)
class Macro:
    """all, exists, exists_one, filter and map over a list or the keys of a map."""

    name: str
    target: Expression
    variable: str
    body: Expression
    condition: Expression | None = None
    """Of map: which items."""

    def value(self, variables: Variables) -> object:
        """What it makes of the items.

        Raises:
            CelError: what it is called on has no items.
        """
        items = self.target.value(variables)
        if not isinstance(items, (list, tuple, Mapping)):
            raise CelError(f"no such overload: {kind_of(items)}.{self.name}")
        scopes = [{**variables, self.variable: item} for item in items]
        match self.name:
            case "all":
                return self._decided(scopes, decisive=False)
            case "exists":
                return self._decided(scopes, decisive=True)
            case "exists_one":
                return sum(boolean(self.body.value(scope)) for scope in scopes) == 1
            case "filter":
                return [scope[self.variable] for scope in scopes if boolean(self.body.value(scope))]
        condition = self.condition
        return [self.body.value(scope) for scope in scopes if condition is None or boolean(condition.value(scope))]

    def _decided(self, scopes: Sequence[Variables], *, decisive: bool) -> bool:
        trouble: CelError | None = None
        for scope in scopes:
            try:
                if boolean(self.body.value(scope)) is decisive:
                    return decisive
            except CelError as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble
        return not decisive


def boolean(value: object) -> bool:
    """The value, which must be a truth.

    Raises:
        CelError: it is something else.
    """
    if not isinstance(value, bool):
        raise CelError(f"no such overload: {kind_of(value)} is not bool")
    return value
