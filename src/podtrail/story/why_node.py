"""Why an attempt took the node it took, and by how much that won, in words and as a table."""

from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.pod import PodStory
from podtrail.story.score_table import ScoreTable
from podtrail.story.words import several

_PLUGINS_NAMED = 4
_NODE_WIDTH = 24


def why_node(pod: PodStory, attempt: AttemptStory) -> list[Line]:
    """Return why the node of a successful attempt was chosen, in one line; nothing where no span tells."""
    node = safe(attempt.selected_node, 80)
    table = attempt.scores
    if not node:
        return []
    if table is not None and table.nodes[0] == attempt.selected_node:
        return [line(strong(node), *_won(table), _looked_at(attempt))]
    if attempt.why.feasible != 1:
        return []
    nominated = next(
        (one for one in pod.attempts if one.nominated_node == attempt.selected_node and one.number != attempt.number),
        None,
    )
    if nominated is not None and attempt.why.evaluated == 1:
        because = f" was nominated by attempt {nominated.number}, which made room there; it was tried first, and fits."
        return [line(strong(node), because, " Nothing was scored.")]
    if attempt.why.nodes == 1:
        return [line(strong(node), " is the only node there is: nothing was scored.")]
    if attempt.why.evaluated == 1:
        return [line(strong(node), " was tried first, alone, and fits: nothing was scored.")]
    of = f" of {several(attempt.why.evaluated, 'node')} looked at" if attempt.why.evaluated else ""
    return [line(strong(node), f" was the only one{of} that fits: nothing was scored.")]


def score_lines(attempt: AttemptStory) -> list[Line]:
    """Return what each plugin gave to the best nodes, a column a node."""
    table = attempt.scores
    if table is None:
        several_fit = (attempt.why.feasible or 0) > 1
        words = "Scores of nodes: not in this source (of a stock kube-scheduler they are in its log at -v=10)."
        return [line(dim(words))] if attempt.result == "Success" and several_fit else []
    scored = f" of {several(table.scored, 'node')} scored" if table.scored else ""
    head = line(f"Scores in attempt {attempt.number}, the best {len(table.nodes)}{scored}:")
    rows: list[list[str | TextPiece]] = [["", *(safe(name, _NODE_WIDTH) for name in table.nodes)]]
    rows += [[safe(share.plugin, 60), *(f"{points:,}" for points in share.points)] for share in table.shares]
    rows.append([strong("total"), *(strong(f"{total:,}") for total in table.totals)])
    untold = [line(dim(f"  {several(table.untold, 'more plugin')} scored"))] if table.untold else []
    return [head, *_to_the_right(rows), *untold]


def _won(table: ScoreTable) -> list[str | TextPiece]:
    first, *others = table.totals
    if not others:
        return [f" had {first:,} points."]
    margin = first - others[0]
    if margin == 0:
        return [f" was drawn from {_equals(table)} nodes with {first:,} points each."]
    whom, by = safe(table.nodes[1], 80), f"{abs(margin):,} {'more' if margin > 0 else 'less'} than"
    won = "won with" if margin > 0 else "was chosen with"
    ahead = table.ahead()
    if margin < 0:
        ahead.reverse()
    named = [f"{safe(plugin, 60)} {points:+,}" for plugin, points in ahead[:_PLUGINS_NAMED]]
    if len(ahead) > _PLUGINS_NAMED:
        named.append(f"{len(ahead) - _PLUGINS_NAMED} more (-v)")
    return [f" {won} {first:,} points, {by} {whom}{': ' if named else ''}{', '.join(named)}."]


def _equals(table: ScoreTable) -> int:
    return max(table.ties or 0, sum(total == table.totals[0] for total in table.totals))


def _looked_at(attempt: AttemptStory) -> str:
    """Return how many of how many nodes were looked at, where these were not all."""
    evaluated, nodes = attempt.why.evaluated, attempt.why.nodes
    if evaluated is None or nodes is None or evaluated >= nodes:
        return ""
    return f" {evaluated:,} of {nodes:,} nodes were looked at."


def _to_the_right(rows: list[list[str | TextPiece]]) -> list[Line]:
    """Return rows as columns, all but the first aligned to the right."""

    def width(cell: str | TextPiece) -> int:
        return len(cell.text if isinstance(cell, TextPiece) else cell)

    def padded(cell: str | TextPiece, to: int) -> str | TextPiece:
        space = " " * (to - width(cell))
        return cell._replace(text=space + cell.text) if isinstance(cell, TextPiece) else space + cell

    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    return columns(
        [[row[0], *(padded(cell, to) for cell, to in zip(row[1:], widths[1:], strict=True))] for row in rows]
    )
