"""From the text of a condition to its parts, by the grammar of OTTL (opentelemetry-collector-contrib, pkg/ottl)."""

import math
from collections.abc import Callable
from typing import NoReturn

from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.collector_functions import only_there
from podtrail_processors.ottl.tokens import Token, tokens_of, unquoted
from podtrail_processors.ottl.values.errors import ConditionError

MOST_NESTED = 48
_LARGEST = 2**63 - 1


def parse_condition(text: str) -> syntax.SyntaxNode:
    """Return the parts of a condition.

    Raises:
        ConditionError: it is none; the text says what is wrong, and where.
    """
    return _ConditionParser(text).condition()


class _ConditionParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0
        self._depth = 0

    def condition(self) -> syntax.SyntaxNode:
        found = self._any()
        if self._next.kind != "end":
            self._fail("'and', 'or' or the end")
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _takes(self, text: str) -> bool:
        """Take the next token if it is this word or mark."""
        token = self._next
        if token.text != text or token.kind not in ("word", "mark"):
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._fail(repr(text))

    def _fail(self, expected: str) -> NoReturn:
        token = self._next
        found = "the end" if token.kind == "end" else repr(token.text)
        raise ConditionError(f"expected {expected}, found {found}", self._text, token.at)

    def _nested(self, parse: Callable[[], syntax.SyntaxNode]) -> syntax.SyntaxNode:
        if self._depth >= MOST_NESTED:
            raise ConditionError(f"nested deeper than {MOST_NESTED}", self._text, self._next.at)
        self._depth += 1
        found = parse()
        self._depth -= 1
        return found

    def _any(self) -> syntax.SyntaxNode:
        at, operands = self._next.at, [self._all()]
        while self._takes("or"):
            operands.append(self._all())
        return syntax.AnyOf(at, tuple(operands)) if len(operands) > 1 else operands[0]

    def _all(self) -> syntax.SyntaxNode:
        at, operands = self._next.at, [self._boolean()]
        while self._takes("and"):
            operands.append(self._boolean())
        return syntax.AllOf(at, tuple(operands)) if len(operands) > 1 else operands[0]

    def _boolean(self) -> syntax.SyntaxNode:
        at = self._next.at
        if self._takes("not"):
            return syntax.Opposite(at, self._plain_boolean())
        return self._plain_boolean()

    def _plain_boolean(self) -> syntax.SyntaxNode:
        """Read a comparison, `true`, `false`, a function or a condition in parentheses.

        A parenthesis may open arithmetic as well: that is tried first.
        """
        start, depth = self._at, self._depth
        try:
            left = self._value()
            if self._next.kind == "compare":
                return syntax.Comparing(left.at, left, self._take().text, self._value())
            if self._tokens[start].text != "(":
                if isinstance(left, syntax.FunctionCall) or (
                    isinstance(left, syntax.Constant) and isinstance(left.value, bool)
                ):
                    return left
                self._fail("a comparison")
        except ConditionError as error:
            if self._tokens[start].text != "(":
                raise
            compared: ConditionError | None = error
        else:
            compared = None
        self._at, self._depth = start + 1, depth
        try:
            found = self._nested(self._any)
            self._expect(")")
        except ConditionError as error:
            raise _further(error, compared) from None
        return found

    def _value(self) -> syntax.SyntaxNode:
        token = self._next
        if token.kind in ("string", "bytes"):
            return self._text_or_bytes()
        if token.text in ("nil", "true", "false"):
            self._take()
            return syntax.Constant(token.at, None if token.text == "nil" else token.text == "true")
        if token.text == "{":
            return self._nested(self._map)
        if token.text == "[":
            return self._nested(self._list)
        if token.kind == "word" and token.text.isupper() and self._tokens[self._at + 1].text != "(":
            self._take()
            return syntax.Enum(token.at, token.text)
        return self._sum()

    def _text_or_bytes(self) -> syntax.Constant:
        token = self._take()
        if token.kind == "string":
            return syntax.Constant(token.at, unquoted(token, self._text))
        if len(token.text) % 2:
            raise ConditionError("bytes take an even number of hexadecimal digits", self._text, token.at)
        return syntax.Constant(token.at, bytes.fromhex(token.text[2:]))

    def _list(self) -> syntax.SyntaxNode:
        at = self._take().at
        items: list[syntax.SyntaxNode] = []
        while not self._takes("]"):
            if items:
                self._expect(",")
            items.append(self._value())
        return syntax.ListDisplay(at, tuple(items))

    def _map(self) -> syntax.SyntaxNode:
        at = self._take().at
        items: list[tuple[str, syntax.SyntaxNode]] = []
        while not self._takes("}"):
            if self._next.kind != "string":
                self._fail("a key in quotes or '}'")
            key = unquoted(self._take(), self._text)
            self._expect(":")
            items.append((key, self._value()))
            self._takes(",")
        return syntax.MapDisplay(at, tuple(items))

    def _sum(self) -> syntax.SyntaxNode:
        return self._steps("sign", self._product)

    def _product(self) -> syntax.SyntaxNode:
        return self._steps("scale", self._signed)

    def _steps(self, kind: str, operand: Callable[[], syntax.SyntaxNode]) -> syntax.SyntaxNode:
        first = operand()
        steps = []
        while self._next.kind == kind:
            token = self._take()
            steps.append(syntax.OperatorStep(token.at, token.text, operand()))
        return syntax.Arithmetic(first.at, first, tuple(steps)) if steps else first

    def _signed(self) -> syntax.SyntaxNode:
        sign = self._take() if self._next.kind == "sign" else None
        if self._takes("("):
            operand = self._nested(self._sum)
            self._expect(")")
        else:
            operand = self._operand()
        if sign is None or sign.text == "+":
            return operand
        if isinstance(operand, syntax.Constant) and isinstance(operand.value, int | float):
            return syntax.Constant(sign.at, -operand.value)
        return syntax.Negative(sign.at, operand)

    def _operand(self) -> syntax.SyntaxNode:
        token = self._next
        if token.kind == "int":
            return self._integer()
        if token.kind == "float":
            number = float(self._take().text)
            if math.isinf(number):
                raise ConditionError("the number is too large", self._text, token.at)
            return syntax.Constant(token.at, number)
        if token.kind != "word" or token.text in ("and", "or", "not"):
            self._fail("a value")
        if token.text[0].isupper():
            return self._nested(self._call)
        return self._path()

    def _integer(self) -> syntax.Constant:
        token = self._take()
        # The digits are bounded before they are converted: conversion takes the square of their number.
        digits = token.text.lstrip("0") or "0"
        if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
            raise ConditionError("the number does not fit 64 bits", self._text, token.at)
        return syntax.Constant(token.at, int(digits))

    def _call(self) -> syntax.SyntaxNode:
        name = self._take()
        if not self._takes("("):
            self._fail(f"'(' after the function {name.text}")
        arguments: list[syntax.Argument] = []
        while not self._takes(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._argument())
        return syntax.FunctionCall(name.at, name.text, tuple(arguments), self._keys())

    def _argument(self) -> syntax.Argument:
        token, name = self._next, ""
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.kind == "word" and token.text[0].islower() and following.text == "=":
            name = self._take().text
            self._take()
        return syntax.Argument(token.at, name, self._value())

    def _path(self) -> syntax.Path:
        at, segments = self._next.at, [self._segment()]
        if self._next.text == "(" and (sentence := only_there(segments[0].name)):
            raise ConditionError(sentence, self._text, self._next.at)
        while self._takes("."):
            segments.append(self._segment())
        return syntax.Path(at, tuple(segments))

    def _segment(self) -> syntax.Segment:
        token = self._next
        if token.kind != "word" or token.text in ("and", "or", "not", "true", "false"):
            self._fail("a field")
        if not token.text.islower():
            what = "functions start with a capital letter" if token.text[0].islower() else "fields are in small letters"
            raise ConditionError(f"unknown name {token.text!r}: {what}", self._text, token.at)
        self._take()
        return syntax.Segment(token.at, token.text, self._keys())

    def _keys(self) -> tuple[syntax.SyntaxNode, ...]:
        keys: list[syntax.SyntaxNode] = []
        while self._takes("["):
            keys.append(self._text_or_bytes() if self._next.kind == "string" else self._nested(self._sum))
            self._expect("]")
        return tuple(keys)


def _further(error: ConditionError, other: ConditionError | None) -> ConditionError:
    """Return the error that came later in the text: the reading that got further is the one that was meant."""
    if other is None or (error.line, error.column) >= (other.line, other.column):
        return error
    return other
