"""Runs one seed, and tells what went wrong as the smallest story that goes wrong in the same way."""

from collections.abc import Iterator, Sequence

from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.quiet import without_logs
from tests.reliability.simulation.scenario import Scenario
from tests.reliability.simulation.shrinking import smallest
from tests.reliability.simulation.world import happened

_TWICE_EVERY = 20
_LINES = 80


def wrong_with(seed: int) -> tuple[int, Sequence[str]]:
    """Return a seed, and what is wrong with its story. Every twentieth is run twice, and must go the same way."""
    with without_logs():
        scenario = generated(seed)
        outcome = happened(scenario)
        if seed % _TWICE_EVERY == 0 and happened(scenario).digest != outcome.digest:
            return seed, ["the same seed went otherwise when it ran again", *outcome.wrong]
        return seed, outcome.wrong


def story(scenario: Scenario) -> Iterator[str]:
    """Yield the smallest story that goes wrong as this one does, and how to have it again."""
    first = happened(scenario).wrong
    kinds = {_kind(line) for line in first}
    small = smallest(scenario, lambda tried: any(_kind(line) in kinds for line in happened(tried).wrong))
    outcome = happened(small)
    yield f"seed {scenario.seed}: of {len(scenario.events)} events these are enough to go wrong:"
    yield from (f"    {line}" for line in small.lines())
    yield "what happens then:"
    yield from (f"    {line}" for line in outcome.story[-_LINES:])
    yield "what is wrong:"
    yield from (f"    {line}" for line in outcome.wrong[:10])
    yield f"to see it again: ./dev simulate --seed {scenario.seed}"


def _kind(wrong: str) -> str:
    """Return what a complaint is about, its numbers and names left out."""
    return " ".join(word for word in wrong.split(":")[0].split() if word.isalpha())
