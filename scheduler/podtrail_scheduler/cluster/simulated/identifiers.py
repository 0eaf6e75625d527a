"""Trace and span ids from a seed, so that the same workload gives the same spans."""

from random import Random

from opentelemetry.sdk.trace.id_generator import IdGenerator


class SeededIdGenerator(IdGenerator):
    """Uniformly distributed non-zero ids in a sequence that follows from the seed alone."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311, reproducible on purpose

    def generate_trace_id(self) -> int:
        """A trace id: 128 bits, not 0."""
        return self._random.getrandbits(128) or 1

    def generate_span_id(self) -> int:
        """A span id: 64 bits, not 0."""
        return self._random.getrandbits(64) or 1

    def is_trace_id_random(self) -> bool:
        """The bits are uniform, as the sampler needs them."""
        return True
