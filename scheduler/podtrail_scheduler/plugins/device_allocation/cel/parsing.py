"""From text to expression."""

import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from .expressions import (
    At,
    Binary,
    Bind,
    CelCall,
    CelList,
    CelLiteral,
    Conditional,
    Expression,
    Has,
    Junction,
    Macro,
    Name,
    Unary,
)
from .values import CelError

_TOKEN = re.compile(
    r"""\s+|//[^\n]*
    |(?P<number>0[xX][0-9a-fA-F]+|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+)
    |(?P<string>[rR]?(?:'{3}[\s\S]*?'{3}|"{3}[\s\S]*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"`?])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_MACROS = frozenset(("all", "exists", "exists_one", "filter", "map"))
_PRECEDENCE: Sequence[frozenset[str]] = (
    frozenset(("==", "!=", "<", "<=", ">", ">=", "in")),
    frozenset(("+", "-")),
    frozenset(("*", "/", "%")),
)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """The expression that `text` writes.

    Raises:
        CelError: it is none; the text says where.
    """
    parser = _CelParser(_tokens(text))
    try:
        expression = parser.expression()
    except RecursionError:
        raise CelError("expression recursion limit exceeded") from None
    parser.expect_end()
    return expression


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise CelError(f"Syntax error at {at + 1}: token recognition error at: {text[at]!r}")
        if match.lastgroup is not None:
            tokens.append(_Token(match.lastgroup, match[0], at))
        at = match.end()
    return [*tokens, _Token("end", "<EOF>", at)]


class _CelParser:
    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def expression(self) -> Expression:
        condition = self._junction("||", lambda: self._junction("&&", lambda: self._binary(0), False), True)
        if not self._take("?"):
            return condition
        then = self.expression()
        self._expect(":")
        return Conditional(condition, then, self.expression())

    def expect_end(self) -> None:
        if self._token.kind != "end":
            raise self._unexpected()

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, text: str) -> bool:
        if self._token.text == text and self._token.kind in ("sign", "name"):
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected()

    def _name(self) -> str:
        token = self._token
        if token.kind != "name":
            raise self._unexpected()
        self._next += 1
        return token.text

    def _unexpected(self) -> CelError:
        return CelError(f"Syntax error at {self._token.at + 1}: unexpected {self._token.text!r}")

    def _junction(self, sign: str, operand: Callable[[], Expression], decisive: bool) -> Expression:
        left = operand()
        while self._take(sign):
            left = Junction(left, operand(), decisive)
        return left

    def _binary(self, level: int) -> Expression:
        if level == len(_PRECEDENCE):
            return self._unary()
        left = self._binary(level + 1)
        while self._token.kind in ("sign", "name") and self._token.text in _PRECEDENCE[level]:
            sign = self._token.text
            self._next += 1
            left = Binary(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        for sign in ("!", "-"):
            if self._take(sign):
                return Unary(sign, self._unary())
        return self._member()

    def _member(self) -> Expression:
        target = self._primary()
        while True:
            if self._take("."):
                name = self._name()
                target = self._method(target, name) if self._take("(") else At(target, CelLiteral(name))
            elif self._take(".?"):
                target = At(target, CelLiteral(self._name()), optional=True)
            elif self._take("["):
                target = At(target, self.expression())
                self._expect("]")
            elif self._take("[?"):
                target = At(target, self.expression(), optional=True)
                self._expect("]")
            else:
                return target

    def _method(self, target: Expression, name: str) -> Expression:
        arguments = self._arguments(")")
        if isinstance(target, Name) and target.name == "cel" and name == "bind":
            variable, bound, body = self._exactly(arguments, 3)
            return Bind(_variable(variable), bound, body)
        if isinstance(target, Name) and target.name == "optional":
            return CelCall(f"optional.{name}", None, arguments)
        if name in _MACROS:
            if name == "map" and len(arguments) == 3:
                return Macro(name, target, _variable(arguments[0]), arguments[2], arguments[1])
            variable, body = self._exactly(arguments, 2)
            return Macro(name, target, _variable(variable), body)
        return CelCall(name, target, arguments)

    def _primary(self) -> Expression:
        token = self._token
        if self._take("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._take("["):
            return CelList(self._arguments("]"))
        self._next += token.kind in ("number", "string", "name")
        match token.kind:
            case "number":
                return CelLiteral(_number(token.text))
            case "string":
                return CelLiteral(_string(token.text))
            case "name" if token.text in _CONSTANTS:
                return CelLiteral(_CONSTANTS[token.text])
            case "name":
                return self._function(token.text) if self._take("(") else Name(token.text)
        raise self._unexpected()

    def _function(self, name: str) -> Expression:
        arguments = self._arguments(")")
        if name != "has":
            return CelCall(name, None, arguments)
        [field] = self._exactly(arguments, 1)
        if not isinstance(field, At):
            raise CelError("invalid argument to has() macro")
        return Has(field)

    def _arguments(self, closing: str) -> list[Expression]:
        arguments: list[Expression] = []
        while not self._take(closing):
            if arguments:
                self._expect(",")
                if self._take(closing):
                    break
            arguments.append(self.expression())
        return arguments

    def _exactly(self, arguments: list[Expression], count: int) -> list[Expression]:
        if len(arguments) != count:
            raise CelError(f"Syntax error at {self._token.at + 1}: {count} arguments are wanted, not {len(arguments)}")
        return arguments


def _variable(expression: Expression) -> str:
    if not isinstance(expression, Name):
        raise CelError("argument must be a simple name")
    return expression.name


def _number(text: str) -> float:
    try:
        if text[:2].lower() == "0x":
            return int(text, 16)
        return int(text) if text.isdigit() else float(text)
    except ValueError as error:  # thousands of digits
        raise CelError(f"Syntax error: invalid number literal: {error}") from error


def _string(text: str) -> str:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ("'''", '"""') else 1
    inner = text[width:-width]
    return inner if raw else _ESCAPE.sub(_unescaped, inner)


def _unescaped(match: re.Match[str]) -> str:
    letter, *digits, octal = match.groups()
    if letter is not None:
        return _ESCAPED.get(letter, letter)
    code = int(octal, 8) if octal is not None else int(next(each for each in digits if each), 16)
    if code > sys.maxunicode or 0xD800 <= code <= 0xDFFF:
        raise CelError(f"Syntax error: invalid unicode code point in {match[0]}")
    return chr(code)
