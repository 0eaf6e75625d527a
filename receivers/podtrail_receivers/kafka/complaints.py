"""What goes wrong with a cluster, in one line each: librdkafka tries again for ever, and says so every time."""

import logging
import time
from typing import Final

from confluent_kafka import KafkaError

from podtrail.transport.kafka.failures import SILENT_LISTENER, UNKNOWN_TOPIC, broker_and_reason, with_hint
from podtrail_receivers.kafka.consumer_listener import Place, named

_SILENCE_SECONDS: Final = 60.0
_UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
_NO_ENTRY: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
_NO_RIGHT: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class Complaints:
    """Says each thing that is wrong once a minute at most, and when it is over."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger], brokers: str, group: str) -> None:
        """Make it. `brokers`, `group`: as the configuration names them."""
        self._log = log
        self._brokers = brokers
        self._group = group
        self._silent: dict[str, float] = {}
        self._without: frozenset[str] = frozenset()
        self._unreachable = False
        self._was_reached = False
        self._known = brokers.count(",") + 1
        self._troubled: set[str] = set()
        """Brokers that did not answer since some did."""

    def tell(self, error: KafkaError, place: Place | None = None) -> None:
        """Say what is wrong."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._unreachable = True
            if len(self._troubled) != 1:  # else it is said already
                hint = "" if self._troubled or self._was_reached else f" ({SILENT_LISTENER})"
                self.say(f"no broker answers at {self._brokers}{hint}; trying again until one does")
        elif error.code() in _UNREACHABLE and place is None:
            broker, said = broker_and_reason(error)
            self._troubled.add(broker)
            self._unreachable = self._unreachable or len(self._troubled) >= self._known
            said, of = with_hint(error, said), broker or self._brokers
            if error.code() == KafkaError._TIMED_OUT and not self._was_reached:
                said += f" ({SILENT_LISTENER})"
            self.say(f"no answer from {of}: {said}; trying again until there is one", of)
        else:
            self.say(self._worded(error, place))

    def say(self, text: str, about: str = "") -> None:
        """Say something, unless it was said within the last minute; `about`: it is the same with other words."""
        now, same = time.monotonic(), about or text
        if now >= self._silent.get(same, now):
            self._silent = {said: until for said, until in self._silent.items() if until > now}
            self._silent[same] = now + _SILENCE_SECONDS
            self._log.warning("%s", text)

    def left_waiting(self) -> None:
        """Say that the group lets nobody in, unless something was said lately that may be why."""
        if all(until <= time.monotonic() for until in self._silent.values()):
            self.say(
                f"group {self._group} lets nobody in: another member takes long to give up its partitions, or the "
                "group's coordinator (a partition of __consumer_offsets) has no leader; waiting"
            )

    def without_leader(self, partitions: frozenset[str]) -> None:
        """Say which partitions nobody serves, and when that is over."""
        if partitions:
            self.say(
                f"{', '.join(sorted(partitions))} without a leader: brokers that have it are away or their disks full; "
                "read again once it has one"
            )
        if again := self._without - partitions:
            self._log.info("%s with a leader again", ", ".join(sorted(again)))
        self._without = partitions

    def known(self, brokers: int) -> None:
        """Note how many brokers there are."""
        self._known = brokers or self._known
        self._was_reached = self._was_reached or brokers > 0

    def reached(self) -> None:
        """Note that brokers answer; say so when it was said that they don't."""
        self._was_reached = True
        if self._unreachable:
            self._unreachable = False
            self._troubled.clear()
            self._silent.clear()
            self._log.info("brokers answer again")

    def _worded(self, error: KafkaError, place: Place | None) -> str:
        code, said = error.code(), with_hint(error, broker_and_reason(error)[1])
        where = "" if place is None or not place[0] else f"{named(place)}: "
        if code in UNKNOWN_TOPIC and place is not None:
            return f"topic {place[0]} is not there; it is read once it is, which metadata::refresh_interval looks for"
        if code in _NO_ENTRY:
            if "mechanism" in said and "credentials" not in said:
                return f"{self._brokers} does not take auth::sasl::mechanism: {said}; trying again"
            return f"{self._brokers} refuses the credentials of auth::sasl: {said}; trying again"
        if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return (
                f"the brokers don't let this user read as group {self._group}: grant it READ on the group; trying again"
            )
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED and place is not None:
            return f"the brokers don't let this user read topic {place[0]}: grant it READ; trying again"
        if code in _NO_RIGHT:
            return f"the brokers don't let this user do what is needed: {where}{said}; trying again"
        if code == KafkaError._SSL:
            return f"TLS with {self._brokers} fails: {said}; trying again"
        if code in _UNREACHABLE:
            return f"no broker answers at {self._brokers}: {where}{said}; trying again until one does"
        return f"{where}{said} ({error.name()}); trying again"
