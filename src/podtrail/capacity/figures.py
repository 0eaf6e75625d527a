"""The measured figures that plans are made of: `figures.json`, which `./dev bench capacity --write` writes."""

from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import Field

from podtrail.config.types import Model

SOURCE: Final = "./dev bench capacity"
"""The command that measures all of them anew."""


FEW: Final = 15_360
"""Spans a second up to which a process takes `SpanCost.few_us` for each: 30 requests of 512."""


class SpanCost(Model):
    """CPU of spans that come to one process: the more come, the less each of them costs."""

    few_us: float = Field(ge=0, description="Microseconds for each of the first `FEW` a second, however small.")
    span_us: float = Field(ge=0, description="Microseconds for each span beyond them.")
    byte_ns: float = Field(ge=0, description="Nanoseconds besides for each byte.")

    def cores(self, spans: float, span_bytes: float) -> float:
        """Return how much of a core so many spans a second keep busy."""
        few = min(spans, FEW)
        return (few * self.few_us + (spans - few) * self.span_us + spans * span_bytes * self.byte_ns / 1e3) / 1e6

    def spans(self, cores: float, span_bytes: float) -> float:
        """Return how many spans a second keep so much of a core busy."""
        of_few = self.cores(FEW, span_bytes)
        if cores <= of_few:
            return FEW * cores / of_few
        return FEW + (cores - of_few) * 1e6 / (self.span_us + span_bytes * self.byte_ns / 1e3)

    def and_then(self, other: "SpanCost", share: float) -> "SpanCost":
        """Return the cost of this for each span and of something else for a share of them."""
        return SpanCost(
            few_us=self.few_us + share * other.few_us,
            span_us=self.span_us + share * other.span_us,
            byte_ns=self.byte_ns + share * other.byte_ns,
        )


class Figures(Model):
    """What a span costs, on one machine."""

    machine: str = Field(description="Where and when it was measured.")
    turn_us: float = Field(gt=0, description="Microseconds of CPU that a turn of the calibration loop took there.")
    sample: SpanCost = Field(description="A span that comes over OTLP/gRPC and is held and judged by three policies.")
    sample_from_kafka: SpanCost = Field(description="The same from Kafka.")
    send: SpanCost = Field(description="A span that is kept and sent over OTLP/gRPC with gzip.")
    forward: SpanCost = Field(description="A span that an agent passes on over OTLP/gRPC with gzip.")
    balance: SpanCost = Field(description="The same with `load_balancing`, by trace id.")
    produce: SpanCost = Field(description="The same into Kafka with zstd, by trace id.")
    broker: SpanCost = Field(description="A span that a Kafka broker takes in and gives out once.")
    process_bytes: float = Field(gt=0, description="Resident bytes of podtrail that holds nothing.")
    held_overhead: float = Field(ge=0, description="Bytes that a held span takes beside its own.")
    peak: float = Field(ge=1, description="Peak of the resident memory above the idle one, over what is held.")
    partition_bytes: float = Field(ge=0, description="Bytes of a partition that nothing has come from.")
    broker_bytes: float = Field(gt=0, description="Resident bytes of a Kafka broker, without its page cache.")
    gzip: float = Field(gt=0, description="Bytes on the wire over bytes of spans, OTLP/gRPC with gzip.")
    wire: float = Field(gt=0, description="Bytes on the wire over bytes of spans, OTLP/gRPC without compression.")
    kafka: float = Field(gt=0, description="Bytes in a Kafka partition over bytes of spans, zstd, by trace id.")
    stored: float = Field(gt=0, description="Bytes written to a queue on disk over bytes of spans.")


@cache
def measured() -> Figures:
    """Return the figures that podtrail comes with."""
    return Figures.model_validate_json((files(__package__) / "figures.json").read_bytes())
