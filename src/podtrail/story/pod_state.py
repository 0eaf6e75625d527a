"""The states of a Pod, each with what page and terminal make of it: one table, the urgent first."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from podtrail.story.lines import Style

PodState = Literal[
    "error",
    "bind refused",
    "image pull failing",
    "crash loop",
    "start failing",
    "unschedulable",
    "preempting",
    "gated",
    "waiting",
    "binding",
    "scheduled",
    "starting",
    "running",
    "terminating",
    "terminated",
    "deleted",
]


class PodStateLook(NamedTuple):
    """How a state is shown. Its word is its name: a colour never tells it alone."""

    colour: Literal["red", "amber", "purple", "green", "blue"]
    """On the page; the name of a CSS class."""
    mark: str
    """A shape before the word, on the page."""
    style: Style
    """On a terminal."""
    node: str = "last tried"
    """What the Pod's node is to it."""
    waits: bool = True
    """It waits for something that can be named."""
    settled: bool = False
    """It is where it should be, or on its way there: nothing to look at."""


POD_STATES: Final[Mapping[PodState, PodStateLook]] = {
    "error": PodStateLook("red", "×", "bad"),
    "bind refused": PodStateLook("red", "×", "bad"),
    "image pull failing": PodStateLook("red", "×", "bad", node="node", waits=False),
    "crash loop": PodStateLook("red", "×", "bad", node="node", waits=False),
    "start failing": PodStateLook("red", "×", "bad", node="node", waits=False),
    "unschedulable": PodStateLook("amber", "!", "held"),
    "preempting": PodStateLook("purple", "›", "held", node="nominated for"),
    "gated": PodStateLook("purple", "#", "held"),
    "waiting": PodStateLook("blue", "·", "held"),
    "binding": PodStateLook("blue", "·", "held", node="being bound to", waits=False),
    "scheduled": PodStateLook("green", "✓", "good", node="node", waits=False, settled=True),
    "starting": PodStateLook("blue", "·", "held", node="node", waits=False, settled=True),
    "running": PodStateLook("green", "✓", "good", node="node", waits=False, settled=True),
    "terminating": PodStateLook("blue", "·", "held", node="node", waits=False, settled=True),
    "terminated": PodStateLook("blue", "■", "", node="ran on", waits=False, settled=True),
    "deleted": PodStateLook("blue", "■", "", node="was on", waits=False, settled=True),
}
"""By urgency."""
SLOW: Final = PodStateLook("amber", "~", "held", node="node", waits=False)
"""Scheduled, but an attempt took longer than it should; the word is `slow`."""
