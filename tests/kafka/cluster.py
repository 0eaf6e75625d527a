"""A Kafka cluster of one or more brokers, and what tests do with it: topics, messages in, messages out, waiting."""

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.envtest.control_plane import HOST, Authority
from tests.free_ports import free_ports
from tests.kafka.broker import DEADLINE, Broker, Place, stop_all

PLAINTEXT = "PLAINTEXT"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SSL = "SSL"
SASL_SSL = "SASL_SSL"

USER, PASSWORD = "podtrail", "open sesame"
"""Log in at the SASL listeners by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and may do everything."""
GUEST = "guest"
"""Logs in by PLAIN with the same password, and has only the rights that a test grants to it."""
_MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
_numbers = itertools.count(1)


class Record(NamedTuple):
    """A message as a consumer gets it. `time`: Unix milliseconds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]
    time: int


class Kafka:
    """A cluster in a folder.

    `secured`: besides PLAINTEXT it listens with SASL, with TLS that asks for a client's certificate (`authority`
    issues them), and with both at once. A guest and certificates of other subjects than exporter have no rights.
    `host`: the address it is reached at. `small_disk`: the size of a second disk, as mount has it ("20m"): every
    other partition is there.
    """

    def __init__(
        self,
        assets: Path,
        folder: Path,
        *,
        brokers: int = 1,
        secured: bool = False,
        properties: Mapping[str, str] | None = None,
        host: str = HOST,
        small_disk: str = "",
    ) -> None:
        self._host = host
        self.authority = Authority(folder / "pki") if secured else None
        names = (PLAINTEXT, SASL_PLAINTEXT, SSL, SASL_SSL) if secured else (PLAINTEXT,)
        ports = iter(free_ports(brokers * (1 + len(names))))
        self.places = [
            Place(number, next(ports), {name: next(ports) for name in names}, host) for number in range(1, brokers + 1)
        ]
        whole = {**_properties(self.places), **(self._security(folder) if secured else {}), **(properties or {})}
        self.brokers = [
            Broker(assets, folder / f"broker-{place.number}", place, whole, small_disk) for place in self.places
        ]
        self._secured = secured

    def start(self) -> None:
        """Returns when all brokers serve clients and know each other."""
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_until_ready()
        self.await_brokers(len(self.brokers))
        if self._secured:
            self._add_users()

    def stop(self) -> None:
        """Ends everything."""
        stop_all(self.brokers)

    def mend(self) -> None:
        """Has every broker run again that was stalled, stopped or killed."""
        gone = [broker for broker in self.brokers if not broker.alive]
        for broker in gone:
            broker.launch()
        for broker in self.brokers:
            broker.go_on()
            broker.wait_until_ready()
        self.await_brokers(len(self.brokers))

    def bootstrap(self, listener: str = PLAINTEXT) -> str:
        """Returns the addresses of all brokers at a listener, as `bootstrap.servers` has them."""
        return ",".join(self.addresses(listener))

    def addresses(self, listener: str = PLAINTEXT) -> list[str]:
        """Returns the addresses of all brokers at a listener, as `brokers` of a configuration has them."""
        return [f"{place.host}:{place.listeners[listener]}" for place in self.places]

    def admin(self) -> AdminClient:
        """Returns a client to manage it with."""
        return AdminClient({"bootstrap.servers": self.bootstrap(), **_QUIET})

    def await_brokers(self, count: int) -> None:
        """Returns when so many brokers are known to be there."""
        admin = self.admin()
        self.wait_for(lambda: len(_metadata(admin).brokers) == count, f"{count} brokers")

    def topic(self, name: str = "", *, partitions: int = 1, replicas: int | None = None, **config: str) -> str:
        """Creates a topic and returns its name, by default one of its own; `max_message_bytes="1000"` and so on."""
        name = name or f"topic-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
        copies = replicas or min(3, len(self.brokers))
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self.admin()
        for future in admin.create_topics(
            [NewTopic(name, partitions, copies, config=settings)], request_timeout=DEADLINE
        ).values():
            future.result()
        self.wait_for(lambda: _led(admin, name) == partitions, f"a leader for each partition of {name}")
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; returns when nobody finds it any more."""
        admin = self.admin()
        for future in admin.delete_topics([name], request_timeout=DEADLINE).values():
            future.result()
        self.wait_for(lambda: name not in _metadata(admin).topics, f"{name} to be gone")

    def add_partitions(self, topic: str, count: int) -> None:
        """Has a topic have so many partitions."""
        admin = self.admin()
        for future in admin.create_partitions([NewPartitions(topic, count)], request_timeout=DEADLINE).values():
            future.result()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Removes what stands before an offset, as retention does."""
        admin = self.admin()
        for future in admin.delete_records(
            [TopicPartition(topic, partition, before)], request_timeout=DEADLINE
        ).values():
            future.result()

    def leader(self, topic: str, partition: int = 0) -> Broker:
        """Returns the broker that leads a partition."""
        number: int = _metadata(self.admin(), topic).topics[topic].partitions[partition].leader
        return self.brokers[number - 1]

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | None],
        *,
        key: bytes | None = None,
        partition: int = -1,
        headers: Mapping[str, bytes] | None = None,
        time_ms: int = 0,
    ) -> None:
        """Writes messages in their order; returns when all replicas have them. `time_ms`: 0 is now."""
        failed: list[KafkaError] = []
        producer = Producer({"bootstrap.servers": self.bootstrap(), "acks": "all", "linger.ms": 0, **_QUIET})

        def ended(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for value in values:
            producer.produce(
                topic, value, key, partition, on_delivery=ended, timestamp=time_ms, headers=dict(headers or {})
            )
            producer.poll(0)
        left = producer.flush(DEADLINE)
        assert left == 0, f"{left} messages for {topic} found no broker"
        assert not failed, f"messages for {topic}: {failed[0]}"

    def consume(self, topic: str, count: int | None = None, *, uncommitted: bool = False) -> list[Record]:
        """Returns what is in a topic from its beginning, partition by partition: so many messages, or all of now.

        `uncommitted`: with those of transactions that are open or were aborted.
        """
        admin = self.admin()
        self.wait_for(lambda: topic in _metadata(admin).topics, f"topic {topic}")
        partitions = sorted(_metadata(admin, topic).topics[topic].partitions)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap(),
                "group.id": f"tests-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted" if uncommitted else "read_committed",
                "fetch.wait.max.ms": 10,  # the end of a partition is reported after it
                **_QUIET,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            found = _read(consumer, count, len(partitions), f"{topic}: {count} messages")
        finally:
            consumer.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def ends(self, topic: str) -> dict[int, int]:
        """Returns the offset that the next message of each partition gets."""
        consumer = self._asking("tests")
        try:
            partitions = _metadata(consumer, topic).topics[topic].partitions
            return {
                each: consumer.get_watermark_offsets(TopicPartition(topic, each), DEADLINE)[1] for each in partitions
            }
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, tuple[int, str]]:
        """Returns offset and metadata that a group has committed of each partition; those without are left out."""
        consumer = self._asking(group)
        try:
            partitions = [TopicPartition(topic, each) for each in _metadata(consumer, topic).topics[topic].partitions]
            found = consumer.committed(partitions, DEADLINE)
        finally:
            consumer.close()
        return {each.partition: (each.offset, each.metadata or "") for each in found if each.offset >= 0}

    def commit(self, group: str, topic: str, commits: Mapping[int, tuple[int, str]]) -> None:
        """Commits offset and metadata of partitions for a group without members."""
        consumer = self._asking(group)
        try:
            offsets = [TopicPartition(topic, each, *commit) for each, commit in commits.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()

    def wait_for(self, ready: Callable[[], Any], what: str) -> None:
        """Returns when something is so that is asked again and again; an error of Kafka's is a no."""
        deadline, last = time.monotonic() + DEADLINE, ""
        while time.monotonic() < deadline:
            try:
                if ready():
                    return
            except KafkaException as error:
                last = f": {error}"
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for {what}{last}")

    def _asking(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self.bootstrap(), "group.id": group, **_QUIET})

    def _security(self, folder: Path) -> dict[str, str]:
        assert self.authority is not None
        names = f"subjectAltName=IP:{self._host},DNS:localhost"
        certificate, key = self.authority.issue("broker", "/CN=broker", "extendedKeyUsage=serverAuth", names)
        store = folder / "broker.pem"
        store.write_bytes(key.read_bytes() + certificate.read_bytes())
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in (USER, GUEST))
        plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        found = {
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *_MECHANISMS)),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            f"listener.name.{SSL.lower()}.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER};User:CN=exporter",
        }
        for listener in (SASL_PLAINTEXT, SASL_SSL):
            found[f"listener.name.{listener.lower()}.plain.sasl.jaas.config"] = plain
            for mechanism in _MECHANISMS:
                found[f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"] = scram
        return found

    def _add_users(self) -> None:
        admin = self.admin()
        for mechanism in _MECHANISMS.values():
            credential = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for future in admin.alter_user_scram_credentials([credential], request_timeout=DEADLINE).values():
                future.result()


_QUIET = {"log_level": 0}
"""Clients of the tests say nothing of brokers that come and go on standard error."""


def _properties(places: Sequence[Place]) -> dict[str, str]:
    copies = str(min(3, len(places)))
    names = ",".join(f"{name}:{name}" for name in (PLAINTEXT, SASL_PLAINTEXT, SSL, SASL_SSL))
    return {
        "controller.quorum.voters": ",".join(f"{place.number}@{place.host}:{place.controller}" for place in places),
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{names}",
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": str(min(2, len(places))),
        "transaction.state.log.num.partitions": "4",
        # Records may be as old as a test has them.
        "log.retention.ms": "-1",
        "group.initial.rebalance.delay.ms": "0",
        # The controller takes a killed broker for dead, and takes it back, soon; a busy machine may delay heartbeats.
        "broker.session.timeout.ms": "6000",
        "initial.broker.registration.timeout.ms": "120000",
        "broker.heartbeat.interval.ms": "500",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # Less memory and fewer threads: tests run several brokers at once.
        "log.cleaner.dedupe.buffer.size": "4194304",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
    }


def _metadata(client: Any, topic: str | None = None) -> Any:
    return client.list_topics(topic, timeout=DEADLINE)


def _led(admin: AdminClient, topic: str) -> int:
    found = _metadata(admin).topics.get(topic)
    return 0 if found is None else sum(each.leader > 0 for each in found.partitions.values())


def _read(consumer: Consumer, count: int | None, partitions: int, what: str) -> list[Record]:
    found: list[Record] = []
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE
    while len(found) < count if count is not None else len(ended) < partitions:
        assert time.monotonic() < deadline, f"waited in vain for {what}, there are {len(found)}"
        for message in consumer.consume(500, 0.1):
            error = message.error()
            if error is None:
                found.append(_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            elif not error.retriable():
                raise KafkaException(error)
    return found


def _record(message: Message) -> Record:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers: dict[str, Any] = dict(message.headers() or ())
    return Record(topic, partition, offset, message.key(), message.value(), headers, message.timestamp()[1])
