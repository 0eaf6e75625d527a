"""Rebalances of the group: librdkafka's callbacks, in the consumer's thread, each of which waits for the loop.

So a partition is open before its first record is fetched, and its last commit is made before somebody else has it.
Heartbeats go on meanwhile: those are librdkafka's own business.
"""

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from podtrail.component.partitions import Commit
from podtrail.transport.kafka.failures import error_of
from podtrail_receivers.kafka.consumer_listener import Assigned, Listener, Place
from podtrail_receivers.kafka.leaders import LeaderWatch
from podtrail_receivers.kafka.messages_at_once import MessagesAtOnce

_REQUEST_SECONDS: Final = 10.0
_COMMITTED_SECONDS: Final = 30.0
"""What a member that was killed has left in a transaction the brokers abort within 20 s (KIP-447)."""
_REBALANCE_SECONDS: Final = 60.0
"""How long the loop may take to open partitions or to let go of them; a group waits five minutes for a member."""

_COMMITTING_SECONDS: Final = 2.0
"""For the commit of partitions that are given up, as long as the group shares out partitions meanwhile."""
_AGAIN_SECONDS: Final = 0.2
SHARING_OUT: Final = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS})
"""A commit that comes while its group shares out partitions anew fails, and is made again: nothing is wrong."""

T = TypeVar("T")


class RebalanceError(Exception):
    """A rebalance could not be gone through; the group is joined anew."""


class Rebalances:
    """What becomes of partitions that come and go."""

    def __init__(self, listener: Listener, leaders: LeaderWatch, at_once: MessagesAtOnce, *, cooperative: bool) -> None:
        """Make it; `cooperative`: whether a rebalance moves single partitions. To be called on the loop."""
        self.cooperative = cooperative
        self.member: object | None = None
        """Who this member is, while the thread waits for the loop."""
        self.to_commit: dict[Place, Commit] = {}
        """What is to be committed next; what is no longer this member's leaves it."""
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._leaders = leaders
        self._at_once = at_once
        self._joined = False
        """Whether the group has shared out partitions since this member came, be it none for it."""
        self._unopened: set[Place] = set()
        """Partitions that are assigned and had no leader then: they are opened once they have one."""
        self._asking: deque[Future[object]] = deque()
        """Who waits to be told who this member is."""

    def ask_for_member(self) -> Future[object] | None:
        """Return, to the loop, what `tell_member` is to answer; None: `member` says it, for the thread waits."""
        asked: Future[object] = Future()
        self._asking.append(asked)  # before one looks: whoever revokes says it first and then answers
        return asked if self.member is None else None

    def tell_member(self, consumer: Consumer) -> None:
        """Answer all who ask who this member is."""
        member = consumer.consumer_group_metadata()
        while self._asking:
            asked = self._asking.popleft()
            if asked.set_running_or_notify_cancel():
                asked.set_result(member)

    def assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin with partitions.

        Raises:
            KafkaException: the brokers don't say what is to be known of them.
            RebalanceError: neither they nor the loop answer in time.
        """
        self._joined = True
        found = self._leaders.find(partitions)
        lacking = {(each.topic, each.partition) for each in found.leaderless}
        led = [each for each in partitions if (each.topic, each.partition) not in lacking]
        starts = self._wait_as_member(consumer, self._listener.assigned(_look_up(consumer, led)))
        chosen = [TopicPartition(*place, offset) for place, offset in starts.items()]
        waiting = [TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(lacking)]
        if self.cooperative:
            consumer.incremental_assign([*chosen, *waiting])
        else:
            consumer.assign([*chosen, *waiting])
        self._at_once.open(starts)
        if chosen:
            consumer.resume(chosen)
        if waiting:
            consumer.pause(waiting)
            self._unopened |= lacking
            self._leaders.soon()
            self._loop.call_soon_threadsafe(self._listener.looked, found.brokers, sorted(lacking))

    def look_for_leaders(self, consumer: Consumer) -> None:
        """Now and then: tell which partitions have no leader, open those that have one at last.

        Raises:
            KafkaException: the brokers don't say what is to be known of them.
            RebalanceError: neither they nor the loop answer in time.
        """
        if not self._leaders.due:
            return
        if not self._joined:
            self._loop.call_soon_threadsafe(self._listener.left_waiting)
        found = self._leaders.look(consumer.assignment())
        if found is None:
            return
        without = [(each.topic, each.partition) for each in found.leaderless]
        self._loop.call_soon_threadsafe(self._listener.looked, found.brokers, without)
        if led := self._unopened.difference(without):
            self._unopened -= led
            given = _look_up(consumer, [TopicPartition(*place) for place in sorted(led)])
            opened = self._wait_as_member(consumer, self._listener.assigned(given))
            self._at_once.open(opened)
            for place, offset in opened.items():
                self.read_from(consumer, TopicPartition(*place, offset))

    def read_from(self, consumer: Consumer, start: TopicPartition) -> None:
        """Have a partition that is assigned read from another offset on."""
        if self.cooperative:
            consumer.incremental_unassign([start])
            consumer.incremental_assign([start])
        else:
            place = start.topic, start.partition
            others = [each for each in consumer.assignment() if (each.topic, each.partition) != place]
            consumer.assign([*consumer.position(others), start])
        consumer.resume([start])

    def revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Give partitions up, in order.

        Raises:
            RebalanceError: the loop does not answer in time.
        """
        places = [(each.topic, each.partition) for each in partitions]
        commits = self._wait_as_member(consumer, self._listener.revoked(places))
        for place, error in _commit(consumer, commits).items():
            self._loop.call_soon_threadsafe(self._listener.failed, error, place)
        self._give_up(consumer, partitions, places)

    def lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Let go of partitions that are somebody else's already.

        Raises:
            RebalanceError: the loop does not answer in time.
        """
        places = [(each.topic, each.partition) for each in partitions]
        self._wait(self._listener.lost(places))
        self._give_up(consumer, partitions, places)

    def _give_up(self, consumer: Consumer, partitions: list[TopicPartition], places: Sequence[Place]) -> None:
        self._wait(self._listener.dropped(places))
        self._unopened.difference_update(places)
        self._at_once.forget(places)
        for place in places:
            self.to_commit.pop(place, None)
        if self.cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _wait_as_member(self, consumer: Consumer, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the loop, and say meanwhile who this member is: a transaction that asks would wait for this."""
        self.member = consumer.consumer_group_metadata()
        self.tell_member(consumer)
        try:
            return self._wait(work)
        finally:
            self.member = None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_REBALANCE_SECONDS)
        except TimeoutError:
            raise RebalanceError(f"a rebalance took the pipelines longer than {_REBALANCE_SECONDS:g} s") from None


def offsets_of(commits: Mapping[Place, Commit]) -> list[TopicPartition]:
    """Return commits as librdkafka takes them."""
    return [TopicPartition(*place, commit.offset, commit.metadata) for place, commit in commits.items()]


def uncommitted(error: KafkaError | None, partitions: Sequence[TopicPartition]) -> Mapping[Place, KafkaError]:
    """Return of which partitions an answer to a commit says that they are not committed, and why."""
    failed = {(each.topic, each.partition): each.error or error for each in partitions}
    return {place: error for place, error in failed.items() if error is not None}


def _look_up(consumer: Consumer, partitions: Sequence[TopicPartition]) -> list[Assigned]:
    """Return what is known of partitions.

    Raises:
        KafkaException: the brokers don't say it.
        RebalanceError: they don't answer in time.
    """
    if not partitions:
        return []
    found: list[Assigned] = []
    for each in consumer.committed(list(partitions), _COMMITTED_SECONDS):
        if each.error is not None:
            raise KafkaException(each.error)
        ends = consumer.get_watermark_offsets(each, _REQUEST_SECONDS)
        if ends is None:
            raise RebalanceError(f"nobody says where {each.topic}[{each.partition}] begins and ends")
        commit = None if each.offset <= OFFSET_INVALID else Commit(each.offset, each.metadata or "")
        found.append(Assigned((each.topic, each.partition), commit, *ends))
    return found


def _commit(consumer: Consumer, commits: Mapping[Place, Commit]) -> Mapping[Place, KafkaError]:
    """Commit and wait for it, again while the group shares out partitions; return what was not committed, and why."""
    deadline = time.monotonic() + _COMMITTING_SECONDS
    failed: dict[Place, KafkaError] = {}
    while commits:
        try:
            answered = consumer.commit(offsets=offsets_of(commits), asynchronous=False)
        except KafkaException as error:
            refused: Mapping[Place, KafkaError] = dict.fromkeys(commits, error_of(error))
        else:
            refused = uncommitted(None, answered or ())
        failed = {place: error for place, error in failed.items() if place not in commits} | dict(refused)
        commits = {place: commits[place] for place, error in refused.items() if error.code() in SHARING_OUT}
        if not commits or time.monotonic() > deadline:
            break
        time.sleep(_AGAIN_SECONDS)
    return failed
