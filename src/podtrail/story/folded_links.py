"""Links of a trace as they are listed: what tells its story stands by itself, many of a kind stand in one line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from podtrail.story.link import LinkStory

_STANDING: Final = frozenset(
    {
        "creation",
        "binding",
        "scheduling",
        "termination",
        "previous-attempt",
        "next-attempt",
        "configuration",
        "owner",
        "deletion",
    }
)
_MOST_STANDING: Final = 3
"""So many of a kind that tells the story stand by themselves: a Pod that starts again and again has dozens of syncs."""


@dataclass(frozen=True, slots=True)
class FoldedLinks:
    """Links of one direction and type that stand in one line."""

    direction: Literal["to", "from"]
    type: str
    links: tuple[LinkStory, ...]
    more: bool
    """Others of the kind stand before it."""

    @property
    def first(self) -> LinkStory | None:
        """The first that can be opened."""
        return next((link for link in self.links if link.fate.held), None)


def fold_links(links: Iterable[LinkStory]) -> list[LinkStory | FoldedLinks]:
    """Return links, kind by kind in the order of their first, with those of which there are many folded, at the end."""
    kinds: dict[tuple[Literal["to", "from"], str], list[LinkStory]] = {}
    for link in links:
        kinds.setdefault((link.direction, link.type), []).append(link)
    listed: list[LinkStory | FoldedLinks] = []
    folded: list[FoldedLinks] = []
    for (direction, kind), alike in kinds.items():
        standing = _MOST_STANDING if kind in _STANDING else 0
        if len(alike) <= standing + 1:
            standing = len(alike)
        listed += alike[:standing]
        if len(alike) > standing:
            fold = FoldedLinks(direction, kind, tuple(alike[standing:]), more=standing > 0)
            (listed if standing else folded).append(fold)
    return [*listed, *folded]
