"""What Kafka's errors mean for a message: in words, and whether another try is worth it."""

import re
from typing import Final

from confluent_kafka import KafkaError, KafkaException

UNKNOWN_TOPIC: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
_NEVER: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError._INVALID_ARG,
    }
)
"""Errors of a message that are the same however often it is sent."""
_OF_BROKER: Final = re.compile(r"(?:\w+: )?(?:\w+://)?(?P<place>\S+:\d+)(?:/\w+)?: (?P<said>.*)", re.DOTALL)
"""As librdkafka has it: what the broker is to it, how it is connected, where it is, its number, what is wrong."""
_FOR_AUTHORS: Final = re.compile(r" \(after |: probably due to broker version")
SILENT_LISTENER: Final = (
    "a broker that wants TLS or SASL closes connections without a word: set tls or auth::sasl, or name another port"
)
_HINTS: Final = (
    ("certificate verify failed", "name its authority with tls::ca_file"),
    ("alert bad certificate", "it wants a client's certificate: tls::cert_file and tls::key_file"),
    ("alert certificate required", "it wants a client's certificate: tls::cert_file and tls::key_file"),
    ("connecting to a PLAINTEXT broker listener?", "remove tls, or name the port of a listener with TLS"),
    ("connecting to a SSL listener?", "set tls, or name the port of a listener without TLS"),
    ("current SASL state", "a listener without SASL: remove auth::sasl, or name another port"),
    ("supported mechanisms", "choose another auth::sasl::mechanism"),
)
"""What is in librdkafka's texts of errors of the configuration, and which key is meant."""
_SILENCE: Final = "a broker hangs, or a partition has no leader (its brokers are away, or their disks full)"


class KafkaFailure(Exception):
    """What Kafka did not do. `retriable`: whether the same may succeed later."""

    def __init__(self, reason: str, code: int = KafkaError._FAIL, *, retriable: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.retriable = retriable


class TransactionAborted(KafkaFailure):
    """A transaction came to nothing, and all that was produced in it: abort it and read its input again."""


class ProducerFenced(TransactionAborted):
    """A producer can't go on, for another has its place or its state is lost: start it anew."""


class TransactionsUnavailable(KafkaFailure):
    """The brokers don't answer who begins to produce in transactions."""


def error_of(exception: KafkaException) -> KafkaError:
    """Return the error that an exception of librdkafka's carries."""
    error = exception.args[0]
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError._FAIL, str(error))


def undelivered(error: KafkaError, topic: str, size: int, seconds: float, trouble: str) -> KafkaFailure:
    """Return what became of a message.

    Args:
        error: what librdkafka says.
        topic: where it was to go.
        size: its bytes.
        seconds: how long librdkafka tried.
        trouble: the last that was heard of the brokers, or "".
    """
    code = error.code()
    if code in _PURGED:
        return TransactionAborted(f"the transaction was aborted before topic {topic} had the message", code)
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        ways = "raise its max.message.bytes, or lower producer::max_message_bytes"
        text = f"topic {topic} takes no message of {size} bytes: {ways}"
        return KafkaFailure(text, code, retriable=False)
    if code in UNKNOWN_TOPIC:
        text = f"there is no topic {topic}, and it was not created by asking for it: create it"
    elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        text = f"the brokers don't let this user write to topic {topic}: grant it WRITE"
    elif code in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        text = f"too few replicas of topic {topic} are in sync (its min.insync.replicas)"
    elif code in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT):
        text = f"topic {topic} acknowledged nothing within {seconds:g} s: {trouble or _SILENCE}"
    else:
        text = f"topic {topic}: {error.str()}"
    return KafkaFailure(text, code, retriable=code not in _NEVER)


def broker_and_reason(error: KafkaError) -> tuple[str, str]:
    """Return which broker librdkafka speaks of, host:port or "", and what it says, but for what its authors need."""
    text = _FOR_AUTHORS.split(error.str(), 1)[0]
    of_broker = _OF_BROKER.match(text)
    return ("", text) if of_broker is None else (of_broker["place"], of_broker["said"])


def spoken(error: KafkaError) -> str:
    """Return what librdkafka says, of which broker if it says that, and which key of the configuration it is about."""
    broker, said = broker_and_reason(error)
    return with_hint(error, f"{broker}: {said}" if broker else said)


def with_hint(error: KafkaError, text: str) -> str:
    """Return what was said of an error, with the key of the configuration that it is probably about."""
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        return f"{text}; {SILENT_LISTENER}"
    return next((f"{text} ({hint})" for said, hint in _HINTS if said in error.str()), text)
