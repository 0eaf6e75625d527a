"""`line_tcp`: sends each span as a line of text over TCP, and decisions if they are wanted."""

import asyncio
from types import TracebackType
from typing import Any, Self

from pydantic import Field

from podtrail.component import Context, Factory, Permanent, Retryable
from podtrail.config.types import DeliverySettings, Endpoint, host_port
from podtrail.otlp import Batch, SpanView, split


class Config(DeliverySettings):
    """Where to send; `timeout`, `retry_on_failure` and `sending_queue` are inherited."""

    endpoint: Endpoint = Field(description="Where to send: host:port.")
    decisions: bool = Field(False, description="Whether decisions of `tail_sampling` are sent, too.")


class LineTcp:
    """Sends a batch as lines and an empty one behind them, and reads the answer: one line."""

    def __init__(self, config: Config, context: Context) -> None:
        """Connect to nobody yet."""
        self._host, self._port = host_port(config.endpoint)
        self._log = context.log
        self.wants_verdicts = config.decisions

    async def __aenter__(self) -> Self:
        """Open what is kept open: nothing here, each batch has its own connection."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""

    async def send(self, batch: Batch) -> int:
        """Deliver a batch; return how many of its spans the other side rejected.

        Raises:
            Retryable: It can't be reached, or is busy.
            Permanent: It will never take this.
        """
        spans = [SpanView(raw) for group in batch.groups for raw in split(group.spans)]
        lines = [f"span {span.trace_id.hex()} {span.span_id.hex()} {span.name!r}" for span in spans]
        lines += [f"decision {v.trace_id.hex()} {v.decision} {v.policy} {v.reason!r}" for v in batch.verdicts]
        word, _, rest = (await self._ask(lines)).partition(" ")
        match word:
            case "ok":
                return int(rest or 0)
            case "busy":
                raise Retryable(f"{self._host} is busy", after=float(rest or 1))
            case _:
                raise Permanent(f"{self._host} answers {word} {rest}".strip())

    async def _ask(self, lines: list[str]) -> str:
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
            try:
                writer.write("\n".join([*lines, "", ""]).encode())
                return (await reader.readline()).decode().strip() or "busy"
            finally:
                writer.close()
        except OSError as error:
            raise Retryable(f"can't reach {self._host}:{self._port}: {error}") from error


def _create(config: Config, context: Context) -> Any:
    return LineTcp(config, context)


FACTORY = Factory(kind="exporter", type="line_tcp", Config=Config, create=_create)
