"""The receiver: joins the group, and joins it again when a membership ends by an error."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException

from podtrail.component import Context
from podtrail.component.partitions import Partitions
from podtrail.transport.kafka.failures import KafkaFailure, error_of
from podtrail.transport.kafka.message import Headers, Message
from podtrail.transport.kafka.producer import AcknowledgedProducer
from podtrail.transport.kafka.properties import Properties, client_properties
from podtrail.transport.kafka.transactions import Transactions
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.checkpoint_topic import CheckpointTopic
from podtrail_receivers.kafka.commits import Commits
from podtrail_receivers.kafka.complaints import Complaints
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.consumer_listener import Place
from podtrail_receivers.kafka.consumer_thread import ConsumerThread
from podtrail_receivers.kafka.dead_letters import DeadLetters
from podtrail_receivers.kafka.instruments import KafkaInstruments
from podtrail_receivers.kafka.keeping import Keeping, KeptAside
from podtrail_receivers.kafka.membership import Equipment, FencedError, Membership
from podtrail_receivers.kafka.properties import consumer_properties
from podtrail_receivers.kafka.reading import MessageReader
from podtrail_receivers.kafka.rebalances import SHARING_OUT, RebalanceError
from podtrail_receivers.kafka.topic_ids import TopicIds
from podtrail_receivers.kafka.transaction_cycle import TransactionCycle

_AGAIN_SECONDS: Final = 2.0
_FENCED_SECONDS: Final = 60.0
"""Whoever has come in its place may be its successor: so it does not put that out at once."""
_CLOSING_SECONDS: Final = 1.0
_SAFE: Final[Properties] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "zstd",
    "linger.ms": 5,
    "message.max.bytes": 1_000_000_000,
}
"""Of the producer of checkpoints and dead letters: how large a message may be, the topic says alone."""
_LARGEST_IN_TRANSACTION: Final = 950_000
"""Bytes. What a topic refuses ends the transaction, each time anew: what is larger is written beside it."""
_TELLING: Final[Properties] = {"message.timeout.ms": 10_000, "topic.metadata.propagation.max.ms": 5_000}
"""After which it says what keeps a message from being written, and it is tried again."""


def _transactional_id(config: Config) -> str:
    """Return what fences a predecessor at once that has a name of its own; the group fences all others (KIP-447)."""
    return f"{config.group_id}-{config.group_instance_id or uuid.uuid4().hex}"


class KafkaReceiver:
    """Reads the partitions that the group gives it, each in its own time."""

    finite = False

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._log = context.log
        self._read = MessageReader(config, context)
        self._owned: dict[Place, AssignedPartition] = {}
        delays = config.telemetry.metrics.kafka_receiver_records_delay.enabled
        self._instruments = KafkaInstruments(context, self._owned.values, delays=delays)
        self._complaints = Complaints(context.log, ", ".join(config.brokers), config.group_id)
        self._properties: dict[str, Any] = {}
        self._producer: AcknowledgedProducer | None = None
        self._reviving = asyncio.Lock()
        self._transactions: Transactions | None = None
        if config.exactly_once:
            self._transactions = Transactions(client_properties(config), _transactional_id(config))

    @property
    def transactions(self) -> Transactions | None:
        """What exporters produce in; None: each by itself."""
        return self._transactions

    @property
    def owned(self) -> Collection[AssignedPartition]:
        """The partitions that it has now."""
        return self._owned.values()

    async def __aenter__(self) -> Self:
        """Read the files that `tls` names; brokers are looked for later, for as long as it takes."""
        self._properties = consumer_properties(self._config)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._properties = {}

    async def run(self, partitions: Partitions) -> None:
        """Be a member of the group until cancelled.

        Raises:
            StartError: the topic of checkpoints is not there and can't be made.
        """
        aside = self._aside()
        if self._producer is not None:
            await self._producer.start()
        try:
            if aside.checkpoints is not None:
                await self._until_open(aside.checkpoints)
            equipment = Equipment(
                self._config,
                self._properties,
                partitions,
                self._owned,
                self._read,
                aside.checkpoints,
                self._instruments,
                self._complaints,
                TopicIds(),
                self._log,
            )
            while True:
                seconds = await self._be_member(equipment, aside)
                await asyncio.sleep(seconds)
        finally:
            if self._producer is not None:
                await self._producer.close(_CLOSING_SECONDS)
            if self._transactions is not None:
                await self._transactions.close()

    async def _be_member(self, equipment: Equipment, aside: KeptAside) -> float:
        """Be a member until something ends it; return the seconds until it is worth joining again."""
        try:
            if self._transactions is not None:
                await self._transactions.start()
            await Membership(equipment, lambda thread, changed: self._commits(thread, changed, aside)).run()
        except (KafkaException, KafkaFailure, RebalanceError) as error:
            self._complaints.say(f"leaves the group {self._config.group_id} and joins it again: {error}")
        except FencedError:
            self._complaints.say(
                f"another member of the group {self._config.group_id} has come as group_instance_id "
                f"{self._config.group_instance_id}, each needs one of its own: joins again in {_FENCED_SECONDS:g} s"
            )
            return _FENCED_SECONDS
        return _AGAIN_SECONDS

    def _aside(self) -> KeptAside:
        config = self._config
        topic, say = config.dead_letter.topic if config.dead_letter else None, self._complaints.say
        checkpoints = None
        client = client_properties(config)
        if config.checkpoints.enabled:
            checkpoints = CheckpointTopic(client, config.checkpoints.topic, config.group_id)
        if topic is not None or (self._transactions is None and checkpoints is not None):
            self._producer = AcknowledgedProducer({**client, **_SAFE, **_TELLING})
        letters = DeadLetters(topic, self._instruments, self._log, say)
        return KeptAside(self._produce, checkpoints, letters, say, self._instruments.gone)

    async def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int = -1,
    ) -> tuple[int, int]:
        size = Message(topic, value, key, headers).size
        if self._transactions is not None and size <= _LARGEST_IN_TRANSACTION:
            return await self._transactions.produce(topic, value, key, headers, partition)
        assert self._producer is not None, "there is one where something is written"
        async with self._reviving:
            if self._producer.failed_for_good:  # by a right that it had not, for example
                await self._producer.restart()
        return await self._producer.produce(topic, value, key, headers, partition)

    async def _until_open(self, checkpoints: CheckpointTopic) -> None:
        while True:
            try:
                await checkpoints.open()
            except KafkaException as error:
                self._complaints.tell(error_of(error))
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                self._complaints.reached()
                return

    def _commits(
        self, thread: ConsumerThread, changed: Callable[[], Awaitable[Collection[str]]], aside: KeptAside
    ) -> Keeping:
        autocommit = self._config.autocommit
        if self._transactions is not None:
            return TransactionCycle(
                self._owned, aside, self._transactions, thread.group, changed, interval=autocommit.interval
            )
        interval = autocommit.interval if autocommit.enable else 0
        return Commits(self._owned, aside, thread.commit, self._uncommitted, interval)

    def _uncommitted(self, place: Place, error: KafkaError) -> None:
        self._instruments.uncommitted(place)
        if error.code() not in SHARING_OUT:
            self._complaints.say(f"offsets can't be committed yet: {error.str()}; trying again")
