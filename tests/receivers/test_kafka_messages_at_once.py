"""How many messages are taken at once, by what those of each partition are like."""

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Message
from podtrail_receivers.kafka import messages_at_once
from podtrail_receivers.kafka.messages_at_once import MOST_BYTES, MessagesAtOnce

SMALL, LARGE = ("spans", 0), ("spans", 1)


def messages(size: int, count: int = 3) -> list[Message]:
    return [Message(topic="spans", value=b"x" * size) for _ in range(count)]


def test_few_are_taken_until_something_is_seen_of_every_partition() -> None:
    at_once = MessagesAtOnce()
    assert at_once.number == 16
    at_once.open([SMALL, LARGE])
    at_once.saw({SMALL: messages(100)})
    assert at_once.number == 16
    at_once.saw({LARGE: []})
    assert at_once.number == 1000


def test_a_partition_of_which_nothing_comes_holds_the_others_up_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages_at_once, "_UNSEEN_SECONDS", 0.0)
    at_once = MessagesAtOnce()
    at_once.open([SMALL, LARGE])
    at_once.saw({SMALL: messages(100)})
    assert at_once.number == 1000


def test_any_of_them_may_be_of_the_partition_with_the_largest() -> None:
    at_once = MessagesAtOnce()
    at_once.saw({SMALL: messages(100, 900), LARGE: messages(500_000, 1)})
    assert at_once.number == 8
    at_once.saw({SMALL: messages(100, 8)})
    assert at_once.number == 8
    at_once.saw({LARGE: messages(2 * MOST_BYTES, 1)})
    assert at_once.number == 1


def test_partitions_that_are_not_fetched_hold_nobody_up() -> None:
    at_once = MessagesAtOnce()
    at_once.saw({SMALL: messages(100), LARGE: messages(500_000)})
    at_once.pause([LARGE])
    assert at_once.number == 1000
    at_once.resume([LARGE])
    assert at_once.number == 8
    at_once.forget([LARGE])
    assert at_once.number == 1000
