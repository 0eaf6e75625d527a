"""What is sought is found, however many values were seen before."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from podtrail_processors.evidence.sought import Seeker, Sought

NUMBERS = st.sets(st.integers(0, 30))


def is_multiple_of(divisor: int) -> Callable[[int], bool]:
    return lambda value: value % divisor == 0


@pytest.mark.parametrize("repeats", [True, False])
@given(seen=st.lists(NUMBERS), later=st.lists(NUMBERS))
def test_tells_exactly_what_is_met_also_what_is_sought_later(
    repeats: bool, seen: list[set[int]], later: list[set[int]]
) -> None:
    seeker = Seeker(repeats=repeats)
    asked: dict[int, Sought] = {}
    for divisor, traces in ((7, seen), (11, later)):
        asked[divisor] = Sought("kind", is_multiple_of(divisor))
        seeker.seek(asked[divisor])
        for values in traces:
            expected = {sought for by, sought in asked.items() if any(value % by == 0 for value in values)}
            assert seeker.met(values) == expected


def test_values_are_asked_about_once() -> None:
    asked: list[int] = []

    def is_met(value: int) -> bool:
        asked.append(value)
        return False

    seeker = Seeker(repeats=True)
    seeker.seek(Sought("kind", is_met))
    for _ in range(3):
        seeker.met([1, 2, 2])
    assert sorted(asked) == [1, 2]


def test_more_values_than_are_remembered_are_told_all_the_same() -> None:
    seeker = Seeker(repeats=True)
    sought = Sought("name", lambda value: value == b"5")
    seeker.seek(sought)
    for number in range(10_000):
        assert seeker.met([b"%d" % number, b"x" * 1000]) == ({sought} if number == 5 else set())
    assert seeker.met([b"5"]) == {sought}


def test_of_attributes_only_those_with_the_key_are_looked_at() -> None:
    seeker = Seeker(repeats=True)
    sought = Sought("attributes", lambda pair: pair.endswith(b"1"), "key")
    seeker.seek(sought)
    assert not seeker.met([b"other1", b"key2"])
    assert seeker.met([b"key1"])
