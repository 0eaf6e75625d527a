"""Expressions of device selectors."""

from typing import Any

import pytest
from podtrail_scheduler.plugins.device_allocation.cel import CelError, parse
from podtrail_scheduler.plugins.device_allocation.cel.values import Quantity, semver

GI = 1024**3 * 10**9
DEVICE = {
    "driver": "gpu.example.com",
    "attributes": {
        "gpu.example.com": {"model": "A100", "index": 3, "fast": True, "version": semver("1.10.0")},
        "other.example.com": {},
    },
    "capacity": {"gpu.example.com": {"memory": Quantity(40 * GI)}},
}


def value(text: str) -> Any:
    return parse(text).value({"device": DEVICE})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("2.5 * 2.0", 5.0),
        ("1 < 2 && 2 <= 2 && 3 > 2.5 && 3 >= 3", True),
        ("!true || 1 == 1.0", True),
        ("true == 1", False),
        ("'a' + \"b\" == 'ab'", True),
        (r"r'\d' == '\\d'", True),
        (r"'\x41\u0042\n'", "AB\n"),
        ("'''it's'''", "it's"),
        ("0x1F", 31),
        ("[1, 2] + [3] == [1, 2, 3]", True),
        ("2 in [1, 2]", True),
        ("'model' in device.attributes['gpu.example.com']", True),
        ("size('abc') + [1].size()", 4),
        ("1 > 2 ? 'x' : 'y'", "y"),
        ("[1, 2, 3].exists(x, x > 2) && [1, 2].all(x, x > 0) && [1, 2].exists_one(x, x == 1)", True),
        ("[1, 2, 3].filter(x, x != 2).map(x, x * 2)", [2, 6]),
        ("[1, 2, 3].map(x, x > 1, x + 1)", [3, 4]),
        ("cel.bind(a, device.attributes['gpu.example.com'], a.model == 'A100' && a.fast)", True),
        ("has(device.driver) && !has(device.attributes['gpu.example.com'].missing)", True),
        ("device.attributes['gpu.example.com'].?missing.orValue('none')", "none"),
        ("device.attributes['gpu.example.com'].?model.orValue('none')", "A100"),
        ("device.attributes['gpu.example.com'][?'index'].hasValue()", True),
        ("device.attributes[?'unknown'].?model.hasValue()", False),
        ("'A100'.startsWith('A') && 'A100'.endsWith('0') && 'A100'.contains('10')", True),
        ("'A100'.matches('^A[0-9]+$') && 'aB'.lowerAscii() == 'ab'", True),
        ("'a,b'.split(',').join('-')", "a-b"),
        ("int('12') + int(3.9)", 15),
        ("string(7) + string(true)", "7true"),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi'))", 0),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('10Gi'))", True),
        ("quantity('1.5k').asInteger() + 1", 1501),
        ("quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')", True),
        ("isQuantity('x') || isSemver('1.0')", False),
        ("device.attributes['gpu.example.com'].version.isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10'))", -1),
        ("semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1')) && semver('2.3.4').minor() == 3", True),
        ("1 // a comment\n + 1", 2),
    ],
)
def test_an_expression_has_its_value(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("device.attributes['gpu.example.com'].missing", "no such key: missing"),
        ("[1][1]", "index out of bounds: 1"),
        ("unknown", "undeclared reference to 'unknown'"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("1 + 'a'", "no such overload: int + string"),
        ("'a' < 1", "no such overload: string < int"),
        ("1 && true", "no such overload: int is not bool"),
        ("'a'.startsWith(1)", "no such overload: string.startsWith(int)"),
        ("quantity('1x')", None),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("semver('1.0')", "no semantic version: '1.0'"),
        ("'a'.matches('(')", "invalid regular expression '(': missing ): ("),
        (
            "'a'.matches('(a{1000}){1000}')",
            "invalid regular expression '(a{1000}){1000}': invalid repetition size: {1000}",
        ),
        ("int('" + "9" * 5000 + "') > 0", None),
        ("int(1e999)", None),
        ("semver('" + "9" * 5000 + ".0.0')", None),
        ("[" * 500 + "]" * 500, "expression recursion limit exceeded"),
        ("9" * 5000, None),
        (r"'\ud800'", r"Syntax error: invalid unicode code point in \ud800"),
        (r"'\U00110000'", r"Syntax error: invalid unicode code point in \U00110000"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, problem: str | None) -> None:
    with pytest.raises(CelError) as raised:
        value(text)
    assert problem is None or str(raised.value) == problem


def test_a_pattern_made_to_hang_does_not(in_time: None) -> None:
    assert value(r"'" + "a" * 40 + r"!'.matches('^([a-z]+ ?)+$')") is False
    assert value(r"'Größe'.matches('^\\p{L}+$')") is True


@pytest.mark.parametrize(
    "text",
    ["false && device.missing", "device.missing && false", "[1, 2].all(x, x == device.missing || x > 5) == 1 && false"],
)
def test_one_side_of_a_junction_can_decide_alone(text: str) -> None:
    assert value(text) is False
    assert value(f"!({text}) || device.missing") is True


@pytest.mark.parametrize("text", ["", "1 +", "(1", "a b", "1 ? 2", "'a", "a.", "#", "[1, 2].all(1, true)", "has(1)"])
def test_what_is_no_expression_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(CelError):
        parse(text)
