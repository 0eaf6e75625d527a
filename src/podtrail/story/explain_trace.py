"""What became of a trace and why: each policy's vote, and the traces it is linked with."""

from collections.abc import Sequence
from dataclasses import dataclass

from podtrail.otlp import Decision, PolicyVote
from podtrail.story.attempt import AttemptStory
from podtrail.story.decisions import DecisionEntry
from podtrail.story.folded_links import FoldedLinks, fold_links
from podtrail.story.lines import MOST_LINES, Explanation, Line, Style, TextPiece, columns, dim, line, safe, strong
from podtrail.story.link import LinkStory, SpanFate
from podtrail.story.pod import PodStory
from podtrail.story.pod_facts import pod_title
from podtrail.story.words import VOTE_WORDS, clock, duration, several

_VOTES = 5
_REASON = 200
_DIGITS = 8
"""Of an id: as many as lead to its trace."""
_WORDS: dict[Decision | None, tuple[str, Style]] = {
    "sampled": (VOTE_WORDS["sampled"], "good"),
    "not_sampled": (VOTE_WORDS["not_sampled"], ""),
    "dropped": (VOTE_WORDS["dropped"], "held"),
    None: ("-", "dim"),
}


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What is known of a trace."""

    trace_id: bytes
    fate: SpanFate
    decisions: Sequence[DecisionEntry] = ()
    """The latest first; of several pipelines, or made anew when an error came late. Late spans that followed a decision
    come behind it."""
    votes: Sequence[PolicyVote] = ()
    """Of the first of them."""
    explained: bool = False
    """The votes say why."""
    attempt: tuple[PodStory, AttemptStory] | None = None
    title: str = ""
    """The name of its root; "" when not known."""
    links: Sequence[LinkStory] | None = None
    """None where no span of it is here."""


def explain_trace(facts: TraceFacts) -> Explanation:
    """Return what became of a trace in plain words."""
    lines = [*_decision(facts), _what(facts)]
    links = _links(facts, fold_links(facts.links or ()))
    room = MOST_LINES - len(lines) - min(len(links), 4)
    votes = _votes(facts.votes, facts, room)
    lines += votes
    room = MOST_LINES - len(lines)
    lines += links if len(links) <= room else [*links[: room - 1], line(dim(f"  {len(links) - room + 1:,} more (-v)"))]
    details = [*_votes(facts.votes, facts, 1_000), *_links(facts, facts.links or ()), *_earlier(facts)]
    return Explanation(tuple(lines), tuple(details))


def verdict_words(decision: Decision, policy: str, reason: str) -> str:
    """Return a decision in words: `kept by failed: scheduler.result=Error`; it is harmless."""
    said = f": {safe(reason, _REASON)}" if reason else ""
    match decision:
        case "sampled":
            return f"kept{f' by {safe(policy, 60)}' if policy else ''}{said}"
        case "dropped":
            return f"dropped{f' by {safe(policy, 60)}' if policy else ''}{said}"
        case _:
            return f"not kept{said}"


def _decision(facts: TraceFacts) -> list[Line]:
    name = strong(facts.trace_id.hex())
    if not facts.decisions:
        held = "its spans are here" if facts.fate.held else facts.fate.words or "nothing is known of it"
        return [line("Trace ", name, f": no decision about it is in this source; {safe(held)}.")]
    last = facts.decisions[0]
    style: Style = "good" if last.decision == "sampled" else "held"
    words = verdict_words(last.decision, last.policy, last.reason)
    verb, colon, rest = words.partition(":")
    passes = " It is a dry run: its spans pass all the same." if last.dry_run and last.decision != "sampled" else ""
    return [line("Trace ", name, " was ", TextPiece(verb, style), f"{colon}{rest}.", passes)]


def _what(facts: TraceFacts) -> Line:
    what = f"{safe(facts.title)}. " if facts.title else ""
    if facts.attempt:
        pod, attempt = facts.attempt
        result = safe(attempt.result, 60) or "no result"
        name = safe(pod_title(pod))
        what = f"Attempt {attempt.number} of {name}: {result}, took {duration(attempt.duration)}. "
    if not facts.decisions:
        return line(what.rstrip() or "Its spans: not in this source.")
    last = facts.decisions[0]
    if _inscribed(last):
        return line(f"{what}When it was decided, and on how many spans, is not in this source.")
    waited = f", {duration(last.decided_at - last.arrived)} after its first span came" if last.arrived else ""
    spans = several(last.spans, "span") if last.spans else "its number of spans is not in this source"
    where = f" in {safe(last.pipeline, 60)}" if last.pipeline else ""
    return line(f"{what}{spans}, decided at {clock(last.decided_at)} UTC{where}{waited}.")


def _inscribed(entry: DecisionEntry) -> bool:
    """Return whether a decision is known from the trace's own spans alone, which bear no time and not all votes."""
    return not entry.decided_at


def _votes(votes: Sequence[PolicyVote], facts: TraceFacts, room: int) -> list[Line]:
    if not facts.decisions:
        return []
    if not votes:
        unknown = _inscribed(facts.decisions[0])
        return [line("Votes: not in this source." if unknown else "Votes: none, no policy was asked.")]
    rows: list[tuple[str | TextPiece, ...]] = []
    for vote in votes:
        word, style = _WORDS[vote.decision]
        said = safe(vote.why, _REASON) if vote.why else ""
        shadow = "(shadow) " if vote.shadow else ""
        rows.append((strong(safe(vote.policy, 60)), TextPiece(word, style), f"{shadow}{said}".rstrip()))
    head = line("Votes:") if facts.explained else line("Votes (what each rests on is not held):")
    most = max(2, room - 1)
    lines = columns(rows)
    if len(lines) > most:
        lines = [*lines[: most - 1], line(dim(f"  {len(lines) - most + 1:,} more votes (-v)"))]
    return [head, *lines]


def _links(facts: TraceFacts, listed: Sequence[LinkStory | FoldedLinks]) -> list[Line]:
    if facts.links is None:
        return [line(dim("Linked traces: not in this source, for no span of this trace is held."))]
    if not facts.links:
        return []
    rows = [_link(link) for link in listed]
    return [line("Linked traces:"), *columns(rows)]


def _link(link: LinkStory | FoldedLinks) -> tuple[str | TextPiece, ...]:
    if isinstance(link, FoldedLinks):
        more = " more" if link.more else ""
        first = f"the first in {link.first.trace_id.hex()}" if link.first else "none is held"
        return link.direction, safe(link.type, 60) or "link", f"{len(link.links):,}{more} spans", first
    fate = link.fate
    became = "here" if fate.held and not fate.words else safe(fate.words)
    inferred = " (inferred)" if link.inferred else ""
    trace_id = link.trace_id.hex()
    label = f"{safe(fate.label, 100)} ({trace_id[:_DIGITS]})" if fate.label else trace_id
    return link.direction, safe(link.type, 60) or "link", label, f"{became}{inferred}"


def _earlier(facts: TraceFacts) -> list[Line]:
    if len(facts.decisions) < 2:
        return []
    rows = [
        (clock(one.decided_at), safe(one.pipeline, 60), verdict_words(one.decision, one.policy, one.reason))
        for one in facts.decisions[1:]
    ]
    return [line("Decided at another time, or in another pipeline (UTC):"), *columns(rows)]
