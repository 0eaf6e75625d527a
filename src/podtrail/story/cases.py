"""What holds a Pod back, in plain words: a case a state. Facts first, then what comes next.

Advice is only a command that looks. What the spans do not tell is said to be "not in this source".
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import Rejection, Why, read_message
from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.configuration_change import Changer
from podtrail.story.lifetime import lifetime_lines
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.linked_calls import LinkedCall, call_words
from podtrail.story.pace import PluginPace, UsualPace
from podtrail.story.pod import PodStory, who_said_no
from podtrail.story.pod_end import PreemptingAttempt
from podtrail.story.pod_requests import PodRequest
from podtrail.story.time_spent import how_it_went
from podtrail.story.time_to_start import where_in_a_line
from podtrail.story.why_node import why_node
from podtrail.story.words import clock, several

_SECOND = 1_000_000_000
_ALL = 99
_NAMES = 3
_REASON = 90
_UNSCHEDULABLE_AT_MOST = 300 * _SECOND
"""After so long kube-scheduler tries a Pod again without an event (its `podMaxInUnschedulablePodsDuration`)."""
_BACKOFF_AT_MOST = 10
"""Seconds; kube-scheduler's `podMaxBackoffSeconds`, and it begins with one."""
_HEADER = re.compile(r"^(preemption: )?\d+/\d+ nodes are available: ")
_SHORTER = (
    (re.compile(r"No preemption victims found for incoming pod"), "no victims"),
    (re.compile(r"Preemption is not helpful for scheduling"), "not helpful"),
)


class OtherPods(NamedTuple):
    """What the scheduler did for others while a Pod waited."""

    pods: int = 0
    """How many were scheduled."""
    last: str = ""
    """The last of them."""
    last_unix_nano: int = 0
    schedulers: frozenset[str] = frozenset()
    """Whose attempts are known, by profile."""


_NO_OTHERS = OtherPods()


@dataclass(frozen=True, slots=True)
class PodContext:
    """What is known beside a Pod's own story."""

    now: int
    """Unix nanoseconds."""
    live: bool
    """Whether `now` is the present: else it is where the source's clock stands, or its recording ends."""
    usual: UsualPace
    plugin: PluginPace | None = None
    """Of the plugin that took longest in the Pod's slowest attempt."""
    changer: Changer | None = None
    """Who made the configuration of the attempt told of."""
    calls: tuple[LinkedCall, ...] = ()
    """What other components did that is linked with the attempt told of."""
    created: PodRequest | None = None
    deleted: PodRequest | None = None
    preemptor: PreemptingAttempt | None = None
    """The attempt that it was preempted for."""
    others: OtherPods = _NO_OTHERS
    """Of a Pod that was never tried."""


def no_node_fits(attempt: AttemptStory, most: int) -> list[Line]:
    """Return who said no to how many nodes and why, in at most `most` lines (at least four)."""
    return refusals_in(attempt.why, attempt.message, most)


def refusals_in(why: Why, message: str, most: int) -> list[Line]:
    """Return who said no to how many nodes and why, in at most `most` lines (at least four)."""
    if not why.rejections:
        said = safe(message) if message else "who said no is not in this source"
        return [line(f"No node fits: {said}")]
    nodes = several(why.nodes, "node") if why.nodes is not None else "how many nodes there are is not in this source"
    notes: list[Line] = []
    if why.message_only:
        head = f"No node fits. {nodes}, by the scheduler's message, which counts reasons:"
        notes = [
            line(
                dim("A node with two reasons counts twice. Names of nodes and plugins' own words: not in this source.")
            )
        ]
    else:
        head = f"No node fits. {nodes}, each under the first plugin that said no:"
    room = max(1, most - 1 - len(notes))
    shown = why.rejections if len(why.rejections) <= room else why.rejections[: room - 1]
    lines = [line(head), *columns(map(_refused, shown), right=1)]
    if len(shown) < len(why.rejections):
        lines.append(line(dim(f"  {len(why.rejections) - len(shown):,} more reasons (-v)")))
    return lines + notes


def _refused(no: Rejection) -> tuple[str | TextPiece, ...]:
    count = "-" if no.nodes is None else f"{no.nodes:,}"
    return strong(count), safe(no.plugin or "not named", 60), safe(no.reason or "-", _REASON), dim(names_of(no))


def names_of(no: Rejection, most: int = _NAMES) -> str:
    """Return the names of nodes: `node-00, node-01, 29 more`."""
    shown = no.names if len(no.names) <= most else no.names[: most - 1]
    more = max(len(no.names), no.nodes or 0) - len(shown)
    return ", ".join([*(safe(name, 60) for name in shown), *([f"{more:,} more"] if more and shown else [])])


def unschedulable(pod: PodStory, around: PodContext, most: int) -> list[Line]:
    """Return why no node fits."""
    told = pod.explained
    if told is None:
        return _by_condition(pod, most)
    rest = [*_preemption(told), *_same(pod, told), next_try(_by_event(told), pod, _UNSCHEDULABLE_AT_MOST, around)]
    return [*no_node_fits(told, most - len(rest)), *rest]


def _by_condition(pod: PodStory, most: int) -> list[Line]:
    """Return what the condition of a Pod says of which no attempt is known."""
    if not pod.condition_message:
        return []
    source = line(dim("By its condition PodScheduled: no attempt is in this source."))
    return [*refusals_in(read_message(pod.condition_message), pod.condition_message, most - 1), source]


def _by_event(told: AttemptStory) -> str:
    plugins = list(dict.fromkeys(safe(no.plugin, 60) for no in told.why.rejections if no.plugin))
    named = ", ".join(plugins[:-1]) + (" or " if plugins[1:] else "") + "".join(plugins[-1:])
    return f"when a Node or Pod event may help{' ' + named if named else ''}"


def next_try(when: str, pod: PodStory, within: int, around: PodContext) -> Line:
    """Return what the next attempt waits for, and by when it comes at the latest."""
    end = pod.last.end_unix_nano if pod.last else 0
    if not end:
        return line(f"Next try: {when}.")
    by = end + within
    past = "" if by >= around.now else ", which is past: none was seen here"
    return line(f"Next try: {when}, or by {clock(by)} UTC{past}.")


def _preemption(told: AttemptStory) -> list[Line]:
    words = preemption_words(told.why.preemption)
    if not words:
        return []
    helps = "Preemption does not help" if "nominated" not in words else "Preemption"
    return [line(f"{helps}: {words}.")]


def preemption_words(said: str) -> str:
    """Return what preemption could do, shorter than the scheduler says it; not escaped text becomes harmless."""
    words = _HEADER.sub("", said.strip()).removesuffix(".")
    for pattern, shorter in _SHORTER:
        words = pattern.sub(shorter, words)
    return safe(words)


def _same(pod: PodStory, told: AttemptStory) -> list[Line]:
    if pod.same < 2:
        return []
    first = pod.attempts[-pod.same]
    whose = "" if told is pod.last else f" Told from attempt {told.number}, the last whose spans tell more."
    since = f", since {clock(first.start_unix_nano)} UTC.{whose}"
    if pod.same == pod.seen and pod.tries > pod.seen:
        return [line(f"Same answer in the {pod.seen:,} attempts seen of {pod.tries:,}{since}")]
    if pod.same == pod.seen:
        return [line(f"Same answer in all {pod.seen:,} attempts{since}")]
    return [line(f"Same answer in the last {pod.same:,} of {pod.tries:,} attempts{since}")]


def gated(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return which gates hold it."""
    if not pod.gates:
        return [
            line("The scheduler's queue holds it: ", strong(safe(pod.held_by, 300))),
            line("A PreEnqueue plugin keeps it from being tried until that changes."),
        ]
    gates = [safe(gate, 80) for gate in pod.gates[:6]] + ([f"{len(pod.gates) - 6} more"] if len(pod.gates) > 6 else [])
    since = f" since {clock(pod.since_unix_nano)} UTC" if pod.since_unix_nano is not None else ""
    return [
        line("Gates left: ", strong(", ".join(gates)), "   ", dim("(spec.schedulingGates)")),
        line("Whoever set them must remove them; the scheduler starts when none is left."),
        line(f"Evidence: the scheduler's Pod watch{since}. {_creator(around)}".rstrip()),
    ]


def _creator(around: PodContext) -> str:
    """Return who created a Pod, in words."""
    if around.created is None:
        return "Who created it: not in this source."
    return f"Created by {safe(around.created.who, 60)}." if around.created.who else ""


def preempting(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return whom it evicts, where, and what is left to wait for."""
    chose = next((one for one in reversed(pod.attempts) if one.nominated_node), None)
    lines: list[Line] = []
    node = safe(pod.node, 80) or "its nominated node"
    if chose:
        refused = safe(who_said_no(chose.why, _ALL))
        because = f" ({refused})" if refused else ""
        whom = _victims(chose)
        lines.append(line(f"Attempt {chose.number}: no node fits{because}; chose {node} and {whom}"))
        lines += _victim_lines(chose)
    last = pod.last
    if last and last is not chose and last.why.preemption:
        lines.append(line(f"Attempt {last.number}: {preemption_words(last.why.preemption)}."))
    lines.append(line("Whether they are gone: not in this source."))
    lines.append(
        line(
            f"Next try: when they are gone. {node} is nominated, not reserved: "
            "a Pod of higher priority may take the room."
        )
    )
    return lines


def _victims(attempt: AttemptStory) -> str:
    if attempt.victims is None:
        return "Pods to evict there (which: not in this source)."
    return f"{several(attempt.victims.pods, 'Pod')} to evict there{':' if attempt.victims.names else '.'}"


def _victim_lines(attempt: AttemptStory) -> list[Line]:
    if attempt.victims is None or not attempt.victims.names:
        return []
    shown = attempt.victims.names[:4]
    lines = [line("  ", strong(safe(name, 100))) for name in shown]
    more = attempt.victims.pods - len(shown)
    return [*lines, line(dim(f"  {more:,} more"))] if more > 0 else lines


def bind_refused(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return who refused the bind, and that room is not the problem."""
    last = pod.last
    if last is None:
        return []
    refusal = read_bind_refusal(last.bind_error)
    found = "A node was found each time" if all(one.bind_error for one in pod.attempts[1:]) else "A node was found"
    found = found if pod.tries > 1 else "A node was found"
    where = f"{', last' if found.endswith('time') else ':'} {safe(pod.node, 80)}" if pod.node else ""
    fit = f" ({last.why.feasible:,} of {last.why.nodes:,} fit)" if last.why.feasible and last.why.nodes else ""
    who = f" by {safe(refusal.plugin, 60)}" if refusal.plugin and not refusal.by_api_server else ""
    backoff = min(_BACKOFF_AT_MOST, 2 ** min(max(pod.tries, 1) - 1, 10)) * _SECOND
    due = last.end_unix_nano + backoff
    when = f"next by {clock(due)} UTC" if due >= around.now else f"the next was due by {clock(due)} UTC"
    lines = [
        line(f"{found}{where}{fit}. The bind was denied{who}:"),
        line("  ", strong(safe(refusal.why, 400))),
        *(line("  ", dim(call_words(call))) for call in around.calls if call.kind == "binding"),
        line(f"Room is not the problem. Retried with growing back-off, at most {_BACKOFF_AT_MOST} s; {when}."),
    ]
    return [*lines, line("Look: ", TextPiece(refusal.look, "command"))] if refusal.look else lines


def error(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return what went wrong."""
    last = pod.last
    if last is None:
        return _by_condition(pod, most)
    said = safe(last.message, 400) if last and last.message else "what went wrong is not in this source"
    return [
        line("The last attempt failed with an error:"),
        line("  ", strong(said)),
        line(f"Retried with growing back-off, at most {_BACKOFF_AT_MOST} s."),
    ]


def waiting(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return that nothing was decided yet."""
    if not pod.attempts:
        gates = [line("Its gates are gone.")] if pod.gated_since_unix_nano is not None else []
        return [*gates, *_never_tried(pod, around)]
    return [line("No attempt with a result was seen: one is running, or its root span was lost.")]


def _never_tried(pod: PodStory, around: PodContext) -> list[Line]:
    """Return what the scheduler did for other Pods while this one was not tried."""
    others = around.others
    asks = f"It asks for the scheduler {safe(pod.scheduler, 80)}. " if pod.scheduler else ""
    if not others.pods:
        return [line(f"{asks}No other Pod was scheduled meanwhile, as far as is known.")]
    last = f"the last {safe(others.last, 100)} at {clock(others.last_unix_nano)} UTC"
    lines = [line(f"Meanwhile {several(others.pods, 'other Pod')} {_were(others.pods)} scheduled, {last}.")]
    if pod.scheduler and pod.scheduler not in others.schedulers:
        known = ", ".join(safe(name, 60) for name in sorted(others.schedulers)[:3])
        return [line(f"{asks}No attempt of that one is known{f', only of {known}' if known else ''}."), *lines]
    return [*lines, line("The scheduler works, but this Pod is not in its queue, or no line about it was read.")]


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def deleted(pod: PodStory, around: PodContext, most: int) -> list[Line]:
    """Return why it had no node when it was deleted, or how it got one."""
    told = pod.explained
    match pod.left_as:
        case "scheduled":
            return scheduled(pod, around, most)
        case "gated":
            held = ", ".join(pod.gates) if pod.gates else pod.held_by
            return [line("Until then it was held by: ", strong(safe(held, 300)))]
        case "bind refused" if pod.last:
            return [line("Its bind was denied: ", strong(safe(read_bind_refusal(pod.last.bind_error).why, 400)))]
        case "unschedulable" | "preempting" if told:
            return [*no_node_fits(told, max(4, most - 2)), *_preemption(told), *_same(pod, told)]
        case "error" if pod.last:
            return [line("Its last attempt failed with an error: ", strong(safe(pod.last.message, 400)))]
        case _:
            return []


def binding(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return where it is being bound to."""
    return [line(f"It is being bound to {safe(pod.node, 80)}; the attempt has no result yet.")]


def scheduled(pod: PodStory, around: PodContext, most: int) -> list[Line]:  # noqa: ARG001 - a case's signature
    """Return what happened before, where the time went, and what others did for it."""
    words = {"creation": "Created by", "binding": "Bound by", "scheduling": "Started by"}
    linked = [line(dim(f"{words[c.kind]} {call_words(c)}, trace {c.trace_id.hex()}")) for c in around.calls]
    node = why_node(pod, pod.last) if pod.last else []
    return [*node, *how_it_went(pod, around.plugin), *linked]


def on_its_node(pod: PodStory, around: PodContext, most: int) -> list[Line]:
    """Return why it is on its node, and its life from creation to end."""
    last = pod.last
    node = why_node(pod, last) if last and last.result == "Success" and last.why.nodes != 1 else []
    spent = where_in_a_line(pod, around.created)
    room = most - len(node) - len(spent)
    return [*node, *lifetime_lines(pod, around.created, around.deleted, room, around.preemptor), *spent]
