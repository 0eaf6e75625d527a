"""Evicted traces are counted when they would have been decided, each once, unless they have come back."""

from podtrail_processors.tail_sampling.holding.evicted import Evicted

SECOND = 10**9
A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def test_who_has_not_come_back_is_counted_when_due() -> None:
    evicted = Evicted(9)
    assert (evicted.add(A, 5 * SECOND, ()), evicted.add(B, 6 * SECOND, ())) == (0, 0)
    assert (evicted.deadline(), bool(evicted)) == (5 * SECOND, True)
    assert evicted.settle(5 * SECOND - 1, ()) is None
    assert evicted.settle(5 * SECOND, {B}) == 1
    assert evicted.deadline() == 6 * SECOND
    assert evicted.settle(9 * SECOND, {B}) == 0
    assert (evicted.deadline(), bool(evicted)) == (None, False)


def test_who_is_evicted_twice_within_a_second_is_counted_once() -> None:
    evicted = Evicted(9)
    for due in (5 * SECOND, 6 * SECOND - 1, 6 * SECOND):
        evicted.add(A, due, ())
    assert evicted.settle(9 * SECOND, ()) == 2


def test_the_oldest_is_counted_early_where_there_is_no_more_room() -> None:
    evicted = Evicted(1)
    assert evicted.add(A, 5 * SECOND, ()) == 0
    assert evicted.add(B, 6 * SECOND, {B}) == 1
    assert evicted.add(C, 7 * SECOND, {B}) == 0
    assert evicted.settle(9 * SECOND, ()) == 1


def test_in_the_end_all_are_counted_that_are_not_there() -> None:
    evicted = Evicted(9)
    for trace in (A, B, C):
        evicted.add(trace, 5 * SECOND, ())
    assert evicted.settle_all({B}) == 2
    assert evicted.settle_all(()) == 0


def test_who_inherits_goes_on_in_the_order_of_their_times() -> None:
    first, second = Evicted(9), Evicted(9)
    first.add(A, 7 * SECOND, ())
    second.add(B, 6 * SECOND, ())
    first.inherit(second.release())
    assert not second
    assert (first.deadline(), first.settle(6 * SECOND, ()), first.deadline()) == (6 * SECOND, 1, 7 * SECOND)
