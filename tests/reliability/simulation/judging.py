"""The verdict on a story: its lives beside uninterrupted runs, and what it is known by."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from podtrail.pipeline.settings import Settings
from tests.reliability.simulation.clients import Request
from tests.reliability.simulation.model import Past, judged, queues_judged, requests_judged
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.traffic import SpanKey, keys_of_pieces, request
from tests.reliability.simulation.uninterrupted import Uninterrupted, uninterrupted


def judge(
    past: Past, setups: Mapping[int, Setup], settings_of: Callable[[Setup], Settings], seed: int
) -> Iterator[str]:
    """Yield what is wrong with a story; `setups`: how each life began."""
    yield from requests_judged(past)
    numbers = [end.number for end in past.ends]
    together = Uninterrupted()
    # Lives of durable pipelines are one run; otherwise each stands alone.
    for lives in [numbers] if past.setup.durable else [[number] for number in numbers]:
        expected = uninterrupted(
            [step for step in past.steps if step.life in lives],
            {life: setups[life] for life in lives},
            settings_of,
            lambda number: request(past.requests[number].send.pieces),
            seed=seed,
        )
        yield from judged(past, expected, lives)
        together.decisions |= expected.decisions
        for exporter, spans in expected.exported.items():
            together.exported.setdefault(exporter, []).extend(spans)
    if past.setup.stored_queues and not past.setup.durable:
        yield from queues_judged(past, together)


def name_of(key: SpanKey, requests: Mapping[int, Request]) -> str:
    """Return what people call a span or a trace."""
    for number, made in requests.items():
        for piece in made.send.pieces:
            for at, known in enumerate(keys_of_pieces([piece])):
                if known == key:
                    return f"span {piece.first + at + 1} of {piece.trace} (request {number})"
                if known[:16] == key:
                    return str(piece.trace)
    return key.hex()


def digest(past: Past, lines: Iterable[str]) -> str:
    """Return a digest of everything that could be seen."""
    seen = hashlib.blake2b(digest_size=12)
    told: Sequence[str] = [*lines, *map(str, past.steps), *(repr(decision) for _, decision in past.decisions)]
    for line in told:
        seen.update(line.encode())
    for delivery in past.deliveries:
        seen.update(repr((delivery.at, delivery.answer, delivery.kept)).encode() + b"".join(delivery.spans))
    return seen.hexdigest()
