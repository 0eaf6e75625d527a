"""What is known of one node: who refuses it and why, and what was bound to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from podtrail.otlp import Rejection
from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.listing import NodeRow
from podtrail.story.pod import PodStory
from podtrail.story.refusal_index import names_some, refused_by_all
from podtrail.story.refusals import RefusalCount, RefusalTally, refusal_lines
from podtrail.story.words import ago, several

_NEVER = 1 << 63
NAMED_INCOMPLETELY = "A source names about ten nodes of a refusal; one of all nodes counts for each of them."
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
    since = min((one.start_unix_nano for pod in pods for one in pod.attempts if _names(one, node)), default=_NEVER)
    for pod in pods:
        for attempt in pod.attempts:
            named = [refusal for refusal in attempt.why.rejections if node in refusal.names]
            every = refused_by_all(attempt) if attempt.start_unix_nano >= since else None
            if every is not None and not any((one.plugin, one.reason) == every for one in named):
                named += _by_all(attempt, every) if any(every) or not named else []
            tally.note(pod, attempt, named)
            unnamed += not named and names_some(attempt)
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


def _names(attempt: AttemptStory, node: str) -> bool:
    return attempt.selected_node == node or any(node in one.names for one in attempt.why.rejections)


def _by_all(attempt: AttemptStory, every: tuple[str, str]) -> list[Rejection]:
    """Return how a node was refused in an attempt that refused all nodes, though it is not named."""
    if any(every):
        return [one for one in attempt.why.rejections if (one.plugin, one.reason) == every][:1]
    return [Rejection("", "", "", "all nodes were refused, by several plugins: by which is not in this source", None)]


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
        lines.append(
            line("How often it was refused: unknown." if told.unnamed else "No attempt that is held refused it.")
        )
    if told.unnamed:
        names = "whose refusals don't name all their nodes: it may be among these"
        lines.append(line(dim(f"{several(told.unnamed, 'attempt')} {names}.")))
    lines.append(line(dim(NAMED_INCOMPLETELY)))
    details = refusal_lines(told.refusals, now, by_plugin=True, most=100, width=1_000)
    if told.bound_lately:
        details.append(line("Bound to it lately: ", ", ".join(safe(name, 120) for name in told.bound_lately)))
    return lines, details


def nodes_lines(rows: Sequence[NodeRow], when: Line) -> tuple[list[Line], list[Line]]:
    """Return all nodes in words, and those that did not fit."""
    if not rows:
        return [line("No node is named by the attempts that are held.", *when)], []
    lines = [line(strong(several(len(rows), "node")), ", those refused most first.", *when)]
    lines += _table(rows[:_LISTED])
    if len(rows) > _LISTED:
        lines.append(line(dim(f"and {len(rows) - _LISTED:,} more: -v")))
    words = (
        "PODS: on it, as far as is known. BOUND: attempts that ended with it. NO: attempts that it was refused in, for"
        f" each plugin and reason. {NAMED_INCOMPLETELY}"
    )
    return [*lines, line(dim(words))], _table(rows[:_LISTED_AT_MOST])


def _table(rows: Sequence[NodeRow]) -> list[Line]:
    table: list[tuple[str | TextPiece, ...]] = [tuple(map(dim, ("PODS", "BOUND", "NO", "NODE", "MOSTLY")))]
    for row in rows:
        mostly = f"{row.plugin}: {row.reason}" if row.plugin else "-" if not row.refused else "several plugins"
        table.append((f"{row.pods:,}", f"{row.bound:,}", row.refusals, safe(row.node, 80), safe(mostly, 110)))
    return columns(table, right=3)
