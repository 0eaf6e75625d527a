"""What is wrong with a condition is said with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from podtrail_processors.ottl import SPAN, SPAN_EVENT, Condition, ConditionError


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("name", 1, 5, "expected a comparison"),
        ("", 1, 1, "expected a value"),
        ("name ==", 1, 8, "expected a value"),
        ('name == "x" AND name == "y"', 1, 13, "'AND'"),
        ('name == "x" and\n  nope == 1', 2, 3, "unknown path 'span.nope'"),
        ('attributes["x"] > 5s', 1, 20, "'s'"),
        ('not attributes["enabled"]', 1, 26, "expected a comparison"),
        ("kind == SPAN_KIND_SERVICE", 1, 9, "SPAN_KIND_SERVER"),
        ('Foo(name) == "x"', 1, 1, "there are Base64Decode"),
        ('ParseXML(name) != ""', 1, 1, "the Collector has the function 'ParseXML', podtrail does not"),
        ('set(name, "x")', 1, 4, "'set' changes data, which a condition can't"),
        ('name == "a" and delete_key(attributes, "x")', 1, 27, "'delete_key' changes data"),
        ('IsMach(name, "x")', 1, 1, "unknown function 'IsMach'; did you mean IsMatch? there are "),
        ('isMatch(name, "x")', 1, 1, "capital letter"),
        ('IsMatch(name, "(")', 1, 1, "missing )"),
        ("IsMatch(name, 5)", 1, 15, "expected a string but got an integer"),
        ("IsMatch(name)", 1, 1, "IsMatch(target, pattern)"),
        ('IsMatch(name, "a", "b")', 1, 1, "3 arguments"),
        ("IsRootSpan", 1, 11, "'('"),
        ("IsRootSpan(1)", 1, 1, "no arguments"),
        ("Now(1) == start_time", 1, 1, "no arguments"),
        ("9223372036854775808 == 1", 1, 1, "64 bits"),
        ("0x123 == 0x00", 1, 1, "even number"),
        (r'name == "\d"', 1, 10, "unknown escape"),
        ("name == 'x'", 1, 9, 'unexpected "\'"'),
        ("((name == 1)", 1, 13, "')'"),
        ("name.x == 1", 1, 1, "unknown path"),
        ('name["x"] == 1', 1, 6, "takes no key"),
        ('ParseKeyValue(name, delimiter=" ") == 1', 1, 1, "must differ"),
        ('ConvertCase(name, "title") == "A"', 1, 1, "lower, upper, snake, camel"),
        ('FormatTime(start_time, "%Q") == ""', 1, 1, "%Q"),
        ("Split(name, nothing=1) == nil", 1, 13, "'nothing'"),
        ("(" * 500 + "true", 1, 50, "nested"),
        ("true and " * 2000 + "true", 1, 1, "longer than"),
    ],
)
def test_says_where_it_is_wrong(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(ConditionError) as caught:
        Condition(text, SPAN)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert says in str(caught.value)


def test_an_event_has_no_root_check_and_a_span_no_event() -> None:
    with pytest.raises(ConditionError, match="unknown function 'IsRootSpan'"):
        Condition("IsRootSpan()", SPAN_EVENT)
    with pytest.raises(ConditionError, match="unknown path 'spanevent"):
        Condition('spanevent.name == "x"', SPAN)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    _read_or_refuse(text)


_WORDS = (
    *("name", 'attributes["x"]', "and", "or", "not", "(", ")", "==", "<", "+", "-", "*", "/", "[", "]", "{", "}", ","),
    *(":", '"a"', "1", "1.5", "0x00", "nil", "true", "IsMatch(", "Len(", "Int(", "KIND", "=", ".", "span", "resource"),
    *("Time(", "Decode(", "ParseCSV(", "SliceToMap(", "Split(", "Unix(", "\\", "\n"),
)


@given(st.lists(st.sampled_from(_WORDS), max_size=25).map(" ".join))
def test_any_words_are_read_or_refused(text: str) -> None:
    _read_or_refuse(text)


def test_deep_and_long_conditions_within_the_bounds_are_read() -> None:
    Condition("(" * 47 + "true" + ")" * 47, SPAN)
    Condition(" + ".join(["1"] * 4000) + " == 4000", SPAN)
    Condition(" or ".join(['name == "x"'] * 1000), SPAN)


def _read_or_refuse(text: str) -> None:
    place = (1, 1)
    try:
        Condition(text, SPAN)
    except ConditionError as error:
        place = (error.line, error.column)
    assert 1 <= place[0] <= text.count("\n") + 1
    assert 1 <= place[1] <= len(text) + 1
