"""How far the answers agree: counted by family, with the differences that are known and why they are there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from . import answers, ours
from .case import Case
from .compare import Comparison, compare
from .families import FAMILIES
from .generate import of_family

KNOWN_DIFFERENCES: Mapping[str, str] = {}
"""Why, by the place of a comparison (`family/number pod field`)."""


class Count(NamedTuple):
    """What came of a family's comparisons."""

    family: str
    cases: int
    pods: int
    comparisons: int
    alike: int
    known: int

    @property
    def row(self) -> str:
        """The line of docs/agreement.md."""
        percentage = 100 * self.alike / self.comparisons
        figures = f"{self.cases} | {self.pods} | {self.comparisons} | {self.alike} | {percentage:.2f} | {self.known}"
        return f"| {self.family} | {figures} |"


def comparisons(asked: Iterable[Case], recorded: Mapping[str, answers.Answers]) -> Iterator[Comparison]:
    """Everything that both schedulers were asked in these cases."""
    for case in asked:
        theirs = recorded[case.name]
        yield from compare(theirs, ours.ask(case, theirs))


def count(family: str, asked: Iterable[Case], found: Iterable[Comparison]) -> Count:
    """Counts the comparisons of a family."""
    asked, found = list(asked), list(found)
    alike = sum(each.alike for each in found)
    known = sum(each.place in KNOWN_DIFFERENCES for each in found if not each.alike)
    return Count(family, len(asked), sum(len(case.pods) for case in asked), len(found), alike, known)


def counts() -> Iterator[Count]:
    """Family by family."""
    recorded = answers.read()
    for family in FAMILIES:
        asked = of_family(family)
        yield count(family, asked, comparisons(asked, recorded))
