"""Messages that can't be read: told with where they stand, counted, skipped, and copied to a topic if that is asked.

A partition waits until its copies are acknowledged, the others go on; what that topic never takes is told and skipped.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from podtrail.transport.kafka.failures import KafkaFailure, TransactionAborted
from podtrail.transport.kafka.message import Headers
from podtrail_receivers.kafka.checkpoint_topic import Produce
from podtrail_receivers.kafka.consumer_listener import Place, named
from podtrail_receivers.kafka.instruments import KafkaInstruments
from podtrail_receivers.kafka.reading import Poisoned, headers_of

_AGAIN_SECONDS: Final = 1.0


class DeadLetters:
    """Takes poisoned messages."""

    def __init__(
        self,
        topic: str | None,
        instruments: KafkaInstruments,
        log: logging.LoggerAdapter[logging.Logger],
        complain: Callable[[str], None],
    ) -> None:
        """Make it.

        Args:
            topic: where they are copied to; None: nowhere.
            instruments: count them.
            log: tells of them.
            complain: says what keeps copies from being written, if it was not said lately.
        """
        self._topic = topic
        self._complain = complain
        self._instruments = instruments
        self._log = log

    async def take(self, place: Place, poisoned: Sequence[Poisoned], produce: Produce) -> None:
        """Tell of messages of a partition, count and copy them; return when the copies are acknowledged."""
        self._instruments.unreadable(place, len(poisoned))
        first, reason = poisoned[0]
        which = f"{named(place)} offset {first.offset()}"
        others = f" (nor can {len(poisoned) - 1} more behind it)" if len(poisoned) > 1 else ""
        becomes = "skipped" if self._topic is None else f"copied to {self._topic} and skipped"
        self._log.warning("%s can't be read%s: %s; %s", which, others, reason, becomes)
        if self._topic is not None:
            await asyncio.gather(*[self._copy(self._topic, place, each, produce) for each in poisoned])

    async def _copy(self, topic: str, place: Place, poisoned: Poisoned, produce: Produce) -> None:
        message, reason = poisoned
        told = {
            "podtrail.topic": place[0],
            "podtrail.partition": str(place[1]),
            "podtrail.offset": str(message.offset()),
            "podtrail.reason": reason,
        }
        own: Headers = [(name, text.encode()) for name, text in told.items()]
        theirs = headers_of(message)
        if theirs is None:
            own.append(("podtrail.headers", b"left out: a name is not UTF-8"))
        headers = [*(theirs or ()), *own]
        which = f"{named(place)} offset {message.offset()}"
        while True:
            try:
                await produce(topic, message.value(), key=message.key(), headers=headers)
            except TransactionAborted:  # and with it that the message was read: it comes again
                raise
            except KafkaFailure as failure:
                if not failure.retriable:
                    self._instruments.not_kept_aside(place)
                    self._log.warning("%s can't be copied to %s, it is lost: %s", which, topic, failure)
                    return
                self._complain(f"{named(place)} waits to have a message that can't be read copied: {failure}")
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return
