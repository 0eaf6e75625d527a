"""Questions of `podtrail why` about more than one Pod: who waits, a node, a plugin, a change of configuration.

They look at all that is held. `hold` takes what is looked at, quickly; `look` is pure and may be done in a thread.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from podtrail.story.change_question import ChangeAnswer, ask_change, change_lines, moment_asked
from podtrail.story.configuration_change import read_changer
from podtrail.story.library import Library
from podtrail.story.lines import Line, dim, safe
from podtrail.story.listing import NodeRow, PluginRow, all_nodes, plugin_rows, with_waiting
from podtrail.story.names_alike import names_alike
from podtrail.story.node_question import NodeAnswer, ask_node, node_lines, node_names, nodes_lines
from podtrail.story.past_attempts import PastAttempts
from podtrail.story.pending_question import PodsAlike, pending_lines, pods_alike
from podtrail.story.plugin_question import (
    PluginAnswer,
    Times,
    ask_plugin,
    plugin_lines,
    plugin_names,
    plugins_lines,
)
from podtrail.story.pod import PodStory, urgency
from podtrail.story.view import to_json
from podtrail.story.words import clock

Subject = Literal["pending", "node", "plugin", "change"]
SUBJECTS: tuple[Subject, ...] = ("pending", "node", "plugin", "change")
_MAX_NAME = 512


@dataclass(frozen=True, slots=True)
class HeldNow:
    """What is looked at. It does not change."""

    pods: Sequence[PodStory]
    now: int
    live: bool
    """`now` is the present."""
    times: Times
    """How long plugins take, where one is asked for."""
    past: PastAttempts
    latest: int
    """Where the source's clock stands, Unix nanoseconds."""
    plugins: Sequence[PluginRow] = ()
    """All plugins, where these are asked for."""


@dataclass(frozen=True, slots=True)
class AllPlugins:
    """Every plugin, as the page lists them."""

    plugins: tuple[PluginRow, ...]


@dataclass(frozen=True, slots=True)
class AllNodes:
    """Every node, those refused most first."""

    nodes: tuple[NodeRow, ...]


class NotKnown(NamedTuple):
    """Nothing is known of what was asked for."""

    why: str


Finding = tuple[PodsAlike, ...] | NodeAnswer | AllNodes | PluginAnswer | AllPlugins | ChangeAnswer | NotKnown


@dataclass(frozen=True, slots=True)
class OverviewAnswer:
    """What is said to a question about more than one Pod."""

    lines: tuple[Line, ...] = ()
    details: tuple[Line, ...] = ()
    subject: Subject = "pending"
    found: Finding = ()
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a mapping for JSON: the lines, and under the subject's name what they tell."""
        if self.problem:
            return {"error": self.problem}
        told = {"lines": to_json(self.lines), "details": to_json(self.details)}
        match self.found:
            case AllNodes(nodes):
                return {**told, "nodes": to_json(nodes)}
            case AllPlugins(plugins):
                return {**told, "plugins": to_json(plugins)}
            case _:
                return {**told, self.subject: to_json(self.found)}


class OverviewQuestion(NamedTuple):
    """What is asked about more than one Pod."""

    subject: Subject
    name: str = ""
    """Of the node or plugin, "" for all of them; of a change the time, or "" for the latest."""

    @classmethod
    def asked(cls, query: Mapping[str, str]) -> bool:
        """Return whether a query asks such a question."""
        return any(subject in query for subject in SUBJECTS)

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the question that a query asks.

        Raises:
            ValueError: it asks none, or several; the text says why.
        """
        asked = [subject for subject in SUBJECTS if subject in query]
        if len(asked) != 1 or any(query.get(name) for name in ("pod", "trace", "attempt", "cluster")):
            raise ValueError("Ask for one of pending, node[=NAME], plugin[=NAME] and change=HH:MM, and nothing beside.")
        name = query[asked[0]].strip()
        if len(name) > _MAX_NAME:
            raise ValueError(f"A name has at most {_MAX_NAME} characters.")
        if asked[0] == "change":
            moment_asked(name, 0)
        return cls(asked[0], "" if asked[0] == "pending" else name)

    def query(self) -> Mapping[str, str]:
        """Return the query that asks it."""
        return {self.subject: self.name}

    def hold(self, library: Library, now: int, *, live: bool) -> HeldNow:
        """Return what is looked at for it."""
        stories = library.stories
        one, all_of_them = self.subject == "plugin" and bool(self.name), self.subject == "plugin" and not self.name
        times = stories.plugin_times.plugins() if one else {}
        past = stories.past.told() if self.subject == "change" or one else PastAttempts()
        rows = tuple(plugin_rows(stories)) if all_of_them else ()
        return HeldNow(stories.unordered(), now, live, times, past, stories.latest, rows)

    def look(self, held: HeldNow) -> Finding:
        """Return what is found; takes long where much is held."""
        pods = sorted(held.pods, key=urgency)  # what is named as an example is the most urgent
        match self.subject:
            case "pending":
                return pods_alike(pods)
            case "node" if not self.name:
                return AllNodes(tuple(all_nodes(pods)))
            case "node":
                return _of_name(self.name, node_names(pods), "node", lambda name: ask_node(pods, name))
            case "plugin" if not self.name:
                return AllPlugins(tuple(with_waiting(held.plugins, pods)))
            case "plugin":
                names = plugin_names(pods, held.times, held.past)
                return _of_name(self.name, names, "plugin", lambda name: ask_plugin(pods, held.times, name, held.past))
            case "change":
                found = ask_change(pods, moment_asked(self.name, held.now), held.past, held.latest)
                return NotKnown(found) if isinstance(found, str) else found

    def tell(self, library: Library, held: HeldNow, found: Finding) -> OverviewAnswer:
        """Return it in words."""
        when: Line = () if held.live else (dim(f" (as of {clock(held.now)} UTC, the end of what is held)"),)
        match found:
            case NotKnown(why):
                return OverviewAnswer(problem=why)
            case NodeAnswer():
                told = node_lines(found, held.now, when)
            case AllNodes():
                told = nodes_lines(found.nodes, when)
            case PluginAnswer():
                told = plugin_lines(found, held.now, when)
            case AllPlugins():
                told = plugins_lines(found.plugins, when)
            case ChangeAnswer():
                made = found.made[:16], found.made[16:]
                changer = read_changer(made[0], library.store.find(*made), library.fate(*made)) if found.made else None
                told = change_lines(found, changer, held.now, when)
            case _:
                told = pending_lines(found, held.now, when)
        return OverviewAnswer(tuple(told[0]), tuple(told[1]), self.subject, found)

    def answer(self, library: Library, now: int, *, live: bool) -> OverviewAnswer:
        """Return the answer of what a library holds, at `now`."""
        held = self.hold(library, now, live=live)
        return self.tell(library, held, self.look(held))


def _of_name(name: str, known: Collection[str], what: Subject, ask: Callable[[str], Finding]) -> Finding:
    """Return what is told of who has a name, capitals left out of account; else say who has one like it."""
    if name in known:
        return ask(name)
    folded = {one.casefold(): one for one in known}
    if name.casefold() in folded:
        return ask(folded[name.casefold()])
    alike = names_alike(name, known)
    there = f"; there is {', '.join(safe(one, 80) for one in alike)}" if alike else ""
    return NotKnown(f"nothing is known of {what} {name}{there}")
