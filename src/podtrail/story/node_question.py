"""What is known of one node: who refuses it and why, and what was bound to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.listing import NodeRow
from podtrail.story.pod import PodStory
from podtrail.story.refusals import RefusalCount, RefusalTally, refusal_lines
from podtrail.story.words import ago, several

_LISTED = 15
_LISTED_AT_MOST = 1_000


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node, as the attempts tell that are held."""

    node: str
    refusals: tuple[RefusalCount, ...]
    bound: int
    """Attempts that bound a Pod to it."""
    bind_failed: int
    """Attempts that chose it, but could not bind."""
    last_bound_unix_nano: int | None
    bound_lately: tuple[str, ...]
    """Pods, the latest first; at most 10."""
    nominated: int
    """Pods that wait to have room made on it."""
    unnamed: int
    """Attempts with refusals of nodes whose names the source does not give, or not all of them."""


def node_names(pods: Sequence[PodStory]) -> set[str]:
    """Return the names of all nodes that attempts tell of."""
    names: set[str] = set()
    for pod in pods:
        for attempt in pod.attempts:
            names.update((attempt.selected_node, attempt.nominated_node))
            for refusal in attempt.why.rejections:
                names.update(refusal.names)
        if pod.on_node:
            names.add(pod.on_node.node)
    return names - {""}


def ask_node(pods: Sequence[PodStory], node: str) -> NodeAnswer:
    """Return what attempts tell of a node."""
    tally = RefusalTally()
    unnamed = failed = 0
    bound: list[tuple[int, str]] = []
    for pod in pods:
        for attempt in pod.attempts:
            named = [refusal for refusal in attempt.why.rejections if node in refusal.names]
            tally.note(pod, attempt, named)
            unnamed += not named and any(len(one.names) < (one.nodes or 1) for one in attempt.why.rejections)
            if attempt.selected_node == node:
                if attempt.result == "Success":
                    bound.append((attempt.end_unix_nano, f"{pod.namespace}/{pod.name}" if pod.name else pod.key))
                else:
                    failed += bool(attempt.bind_error)
    bound.sort(reverse=True)
    return NodeAnswer(
        node=node,
        refusals=tally.told(),
        bound=len(bound),
        bind_failed=failed,
        last_bound_unix_nano=bound[0][0] if bound else None,
        bound_lately=tuple(name for _, name in bound[:10]),
        nominated=sum(pod.state == "preempting" and pod.node == node for pod in pods),
        unnamed=unnamed,
    )


def node_lines(told: NodeAnswer, now: int, when: Line) -> tuple[list[Line], list[Line]]:
    """Return it in words, and more."""
    last = f", the last {ago(told.last_bound_unix_nano, now)}" if told.bound else ""
    lines = [line("Node ", strong(safe(told.node)), f": {several(told.bound, 'Pod')} bound{last}.", *when)]
    if told.bind_failed:
        lines.append(line(f"{several(told.bind_failed, 'attempt')} chose it and could not bind."))
    if told.nominated:
        lines.append(line(f"{several(told.nominated, 'Pod')} nominated for it, waiting for others to go."))
    if told.refusals:
        lines.append(line("Who refused it, by how many Pods that wait now, by Pods and by attempts:"))
        lines += refusal_lines(told.refusals, now, by_plugin=True)
    else:
        lines.append(line("No attempt that is held names it among the nodes that were refused."))
    if told.unnamed:
        names = "whose refusals don't name all their nodes: it may be among these"
        lines.append(line(dim(f"{several(told.unnamed, 'attempt')} {names}.")))
    details = refusal_lines(told.refusals, now, by_plugin=True, most=100, width=1_000)
    if told.bound_lately:
        details.append(line("Bound to it lately: ", ", ".join(safe(name, 120) for name in told.bound_lately)))
    return lines, details


def nodes_lines(rows: Sequence[NodeRow], when: Line) -> tuple[list[Line], list[Line]]:
    """Return all nodes in words, and those that did not fit."""
    if not rows:
        return [line("No node is named by the attempts that are held.", *when)], []
    lines = [line(strong(several(len(rows), "node")), ", those refused most first.", *when), *_table(rows[:_LISTED])]
    if len(rows) > _LISTED:
        lines.append(line(dim(f"and {len(rows) - _LISTED:,} more: -v")))
    words = (
        "PODS: on it, as far as is known. BOUND: attempts that ended with it. NO: refusals that name it, once an"
        " attempt for each plugin and reason. Of the attempts that are held."
    )
    return [*lines, line(dim(words))], _table(rows[:_LISTED_AT_MOST])


def _table(rows: Sequence[NodeRow]) -> list[Line]:
    table: list[tuple[str | TextPiece, ...]] = [tuple(map(dim, ("PODS", "BOUND", "NO", "NODE", "MOSTLY")))]
    for row in rows:
        mostly = f"{row.plugin}: {row.reason}" if row.refused else "-"
        table.append((f"{row.pods:,}", f"{row.bound:,}", f"{row.refused:,}", safe(row.node, 80), safe(mostly, 110)))
    return columns(table, right=3)
