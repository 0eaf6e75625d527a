"""What the functions of conditions give."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from podtrail_processors.ottl import SPAN, Condition, EvaluationError
from podtrail_processors.ottl.functions import FUNCTIONS

from tests.sizes import large

Ask = Callable[..., bool]


@pytest.mark.parametrize(
    "condition",
    [
        'Len(attributes["unicode"]) == 5',
        'Len(attributes["map"]) == 2 and Len("") == 0',
        'IsMatch(attributes["int"], "^4..$") and IsMatch(attributes["double"], "1\\\\.5")',
        'IsMatch(attributes["yes"], "true") and IsMatch(attributes["list"], "^\\\\[1,5,10\\\\]$")',
        'IsMatch(attributes["map"], "\\"score\\":87") and not IsMatch(attributes["missing"], "")',
        'Int(attributes["double"]) == 1 and Int(attributes["yes"]) == 1 and Int(nil) == nil',
        'Int(attributes["digits"]) == 42 and Double(attributes["digits"]) == 42.0 and Double(true) == 1',
        'String(attributes["int"]) == "404" and String(attributes["missing"]) == nil and String(1.0) == "1"',
        'String(0.0000001) == "1e-7" and String(1.5) == "1.5"',
        'String(1500000000000000000000000.0) == "1.5e+24" and String(0.00001) == "0.00001"',
        'String(start_time) == "\\"2025-10-09T08:53:20Z\\"" and String(end_time - start_time) == "1500000000"',
        'String([1.0, "<", {"b": nil, "a": 0x00}]) == "[1,\\"\\\\u003c\\",{\\"a\\":\\"AA==\\",\\"b\\":null}]"',
        'String(span_id) == "80327f7b7e7cfa91" and String(true) == "true"',
        'Bool(attributes["int"]) and Bool("t") and not Bool(0)',
        'Hex(attributes["int"]) == "0000000000000194" and Hex("1") == "31" and Hex(true) == "01"',
        'ParseInt("0xFF", 0) == 255 and ParseInt("-20", 8) == -16 and ParseInt("0b1_0", 0) == 2',
        'ParseInt("017", 0) == 15',
        'Log(1) == 0 and Substring(name, 0, 5) == "Sched" and Substring("一二", 0, 4, true) == "一"',
        'Concat([name, attributes["int"], nil], ":") == "Scheduling:404:<nil>"',
        'Split("a,b", ",")[1] == "b" and Split("a,b", delimiter=",") == ["a", "b"]',
        'ToLowerCase("aB") == "ab" and ToUpperCase("aB") == "AB" and ConvertCase("aB", "upper") == "AB"',
        'ToSnakeCase("camelCaseName") == "camel_case_name" and ToSnakeCase("HTTPServer2x") == "http_server_2_x"',
        'ToCamelCase("my_metric-name") == "MyMetricName" and ConvertCase("a b1c", "camel") == "AB1C"',
        'Trim("  a ") == "a" and Trim("!a!", "!") == "a" and TrimPrefix("abc", "a") == "bc"',
        'TrimSuffix("abc", "c") == "ab"',
        'HasPrefix(name, "Sched") and HasSuffix(name, "ling") and not HasPrefix(name, "x")',
        'Index("héllo", "llo") == 3 and Index(attributes["list"], 5.0) == 1 and Index("a", "b") == -1',
        'ContainsValue(attributes["names"], "Fit") and ContainsValue([1, 2.0], 2) and not ContainsValue([], nil)',
        'IsEmpty("") and IsEmpty(nil) and IsEmpty(0) and IsEmpty(false) and IsEmpty([]) and IsEmpty(parent_span_id)',
        'IsInt(1) and IsDouble(1.0) and IsBool(true) and IsString("") and IsList([]) and IsMap({}) and not IsInt(true)',
        'IsInCIDR("10.1.2.3", ["10.0.0.0/8"]) and not IsInCIDR("x", ["10.0.0.0/8"])',
        'IsValidLuhn("17893729974") and not IsValidLuhn(17893729975)',
        'Coalesce([attributes["missing"], "b"]) == "b" and Coalesce([nil]) == nil',
        'Sort([3, 1, 2])[0] == 1 and Sort(attributes["names"], "desc")[0] == "NodeAffinity"',
        "Sort([2, 1.5])[0] == 1.5",
        'Keys({"a": 1}) == ["a"] and Values({"a": 1}) == [1] and IsEmpty(Keys({}))',
        'ToKeyValueString({"b": "x y", "a": 1}, sort_output=true) == "a=1 b=\\"x y\\""',
        'SliceToMap([{"n": "a", "v": 2}], ["n"], ["v"])["a"] == 2 and SliceToMap([{"n": "a"}])["0"]["n"] == "a"',
        'ParseJSON(attributes["json"])["user"]["id"] == 42',
        'ParseJSON(attributes["json"])["user"]["roles"][0] == "admin"',
        'IsDouble(ParseJSON("1")) and ParseJSON("{\\"a\\":null}")["a"] == nil',
        'ParseKeyValue("a=1 b=\\"x y\\"")["b"] == "x y" and ParseKeyValue("k!v_l!w", "!", "_")["l"] == "w"',
        'ParseCSV("1;\\"a;b\\"", "n;t", ";")["t"] == "a;b" and ParseCSV("1,2", "a|b", headerDelimiter="|")["b"] == "2"',
        'ExtractPatterns("sha=ab1", "sha=(?P<sha>\\\\w+)")["sha"] == "ab1"',
        'URL("https://h:8080/a/b.html?q=1#f")["url.port"] == 8080 and URL("http://h/x")["url.path"] == "/x"',
        'Decode("cm9vdA==", "base64") == "root" and Base64Decode("cm9vdA==") == "root"',
        'Base64Encode("root") == "cm9vdA=="',
        'Decode("-_8", "base64-raw-url") != "" and Decode("a", "us-ascii") == "a"',
        'FNV("name") == FNV("name") and FNV("") == "" and FNV("a") == -5808556873153909620',
        'Murmur3Hash("hello") == "47fa8b24" and Murmur3Hash("") == "00000000"',
        'Murmur3Hash128("hello") == "029bbd41b3a7d8cb191dae486a901e5b" and Len(Murmur3Hash128(name)) == 32',
        'Format("%s-%d-%v", [name, attributes["int"], nil]) == "Scheduling-404-<nil>"',
        'Format("%04d|%-4d|%4d|%x|%X", [7, 7, 7, 255, "hi"]) == "0007|7   |   7|ff|6869"',
        'Format("%.2f %f %v %v %t", [1.005, 1.5, 1.5, 2.0, true]) == "1.00 1.500000 1.5 2 true"',
        'Format("%v %+v %g", [0.0000001, 1.5, -0.5]) == "1e-07 +1.5 -0.5"',
        'Format("%q", ["a\\"b"]) == "\\"a\\\\\\"b\\""',
        'Format("%d %s", ["x"]) == "%!d(string=x) %!s(MISSING)" and Format("100%%", [1]) == "100%%!(EXTRA int64=1)"',
        'Format("%v %v", [[1, "a"], {"k": true}]) == "[1 a] map[k:true]" and Format("%s", [1]) == "%!s(int64=1)"',
        'MD5("") == "d41d8cd98f00b204e9800998ecf8427e" and Len(SHA1("")) == 40 and Len(SHA256("")) == 64',
        'Len(SHA512("")) == 128',
    ],
)
def test_values_and_text(holds: Ask, condition: str) -> None:
    assert holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        'Duration("1h30m") == Duration("90m") and Duration("-1.5s") < Duration("0")',
        'Duration("500us") > Duration("1ns")',
        'Seconds(end_time - start_time) == 1.5 and Minutes(Duration("90s")) == 1.5 and Hours(Duration("30m")) == 0.5',
        'Milliseconds(Duration("1.9999ms")) == 1 and Microseconds(Duration("-1ms")) == -1000',
        'Nanoseconds(Duration("1us")) == 1000',
        "UnixSeconds(start_time) == 1760000000 and UnixMilli(end_time) - UnixMilli(start_time) == 1500",
        'Unix(1760000000) == start_time and Unix(0, 5) == Unix(0) + Duration("5ns")',
        "UnixNano(Unix(1)) == 1000000000",
        'FormatTime(start_time, "%Y-%m-%d") == "2025-10-09"',
        'FormatTime(start_time, "%F %T %b %a") == "2025-10-09 08:53:20 Oct Thu"',
        'TruncateTime(start_time, Duration("1h")) == Time("2025-10-09 08", "%Y-%m-%d %H")',
        'Time("2025-10-09T08:53:20Z", "%Y-%m-%dT%H:%M:%SZ") == start_time',
        'Time("09/Oct/2025 10:53:20 +0200", "%d/%b/%Y %H:%M:%S %z") == start_time',
        'Time("2025-10-09 10:53:20", "%F %T", "Europe/Berlin") == start_time',
        'UnixNano(Time("1970-01-01 00:00:00.25", "%F %T")) == 250000000',
        "Year(start_time) == 2025 and Month(start_time) == 10 and Day(start_time) == 9 and Hour(start_time) == 8",
        'IsEmpty(Duration("0")) and not IsEmpty(start_time)',
        "Now() > end_time and Nanoseconds(Now() - Now()) == 0",
        "Minute(start_time) == 53 and Second(start_time) == 20 and Nanosecond(end_time) == 500000000",
        "Weekday(start_time) == 4",
    ],
)
def test_times(holds: Ask, condition: str) -> None:
    assert holds(condition)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("depth", [65, 900, 50_000])
def test_deeply_nested_json_has_no_answer(asked: Callable[..., Any], depth: int) -> None:
    condition = Condition('String(ParseJSON(attributes["j"])) == ""', SPAN)
    with pytest.raises(EvaluationError):
        condition.holds(asked(attributes={"j": "[" * depth + "]" * depth}).seen_by(condition))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(8, 100))
def test_on_any_values_a_function_gives_a_value_or_an_error(
    name: str, data: st.DataObject, asked: Callable[..., Any]
) -> None:
    function = FUNCTIONS[name]
    given_ = data.draw(st.integers(function.least, len(function.parameters)))
    attributes = {f"a{index}": data.draw(_VALUES) for index in range(given_)}
    arguments = ", ".join(f'attributes["{key}"]' for key in attributes)
    condition = Condition(f"{name}({arguments}) == nil", SPAN)
    with suppress(EvaluationError):
        condition.holds(asked(attributes=attributes).seen_by(condition))
