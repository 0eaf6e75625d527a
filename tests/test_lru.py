"""The bounded mapping lets go of what was not written for longest."""

import copy
import pickle

from podtrail.lru import Lru


def test_lets_go_of_what_was_not_written_for_longest() -> None:
    held: Lru[str, int] = Lru(2)
    assert held.put("a", 1) is None
    assert held.put("b", 2) is None
    assert held.put("a", 3) is None

    assert held.put("c", 4) == ("b", 2)
    assert list(held.items()) == [("a", 3), ("c", 4)]


def test_reading_does_not_refresh_and_moving_does() -> None:
    held: Lru[str, int] = Lru(2)
    held.put("a", 1)
    held.put("b", 2)
    assert held["a"] == 1
    assert held.put("c", 3) == ("a", 1)
    held.move_to_end("b")
    assert held.put("d", 4) == ("c", 3)


def test_of_no_room_nothing_is_held() -> None:
    held: Lru[str, int] = Lru(0)
    assert held.put("a", 1) == ("a", 1)
    assert not held


def test_a_copy_has_the_same_entries_in_their_order_and_the_same_bound() -> None:
    held: Lru[str, int] = Lru(2)
    for number, key in enumerate("abca"):
        held.put(key, number)
    for other in (copy.copy(held), pickle.loads(pickle.dumps(held))):
        assert list(other.items()) == [("c", 2), ("a", 3)]
        assert other.put("d", 4) == ("c", 2)
