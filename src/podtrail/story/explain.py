"""Why a Pod waits, or how it got its node, in at most twelve lines: what page, `podtrail why` and reports say."""

from collections.abc import Callable, Mapping, Sequence

from podtrail.story import cases
from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.cases import PodContext
from podtrail.story.compare import compare, list_attempts
from podtrail.story.configuration_change import change_line, configuration_changes
from podtrail.story.held_attempts import attempt_numbered
from podtrail.story.lifetime import lifetime_lines, node_words
from podtrail.story.lines import MOST_LINES, Explanation, Line, Style, TextPiece, dim, line, safe, strong
from podtrail.story.linked_calls import call_words
from podtrail.story.on_node import NodeStory
from podtrail.story.pod import PodStory, slow_attempt
from podtrail.story.pod_end import end_lines
from podtrail.story.pod_facts import pod_title
from podtrail.story.pod_state import POD_STATES, SLOW, PodState
from podtrail.story.time_spent import spent, time_table
from podtrail.story.time_to_start import where_the_time_went
from podtrail.story.why_node import score_lines, why_node
from podtrail.story.words import ago, clock, duration, several

_ALL = 99
_CASES: Mapping[PodState, Callable[[PodStory, PodContext, int], list[Line]]] = {
    "error": cases.error,
    "bind refused": cases.bind_refused,
    "unschedulable": cases.unschedulable,
    "preempting": cases.preempting,
    "gated": cases.gated,
    "waiting": cases.waiting,
    "binding": cases.binding,
    "scheduled": cases.scheduled,
    "starting": cases.on_its_node,
    "running": cases.on_its_node,
    "image pull failing": cases.on_its_node,
    "crash loop": cases.on_its_node,
    "start failing": cases.on_its_node,
    "terminating": cases.on_its_node,
    "terminated": cases.on_its_node,
    "deleted": cases.deleted,
}


def explain_pod(pod: PodStory, around: PodContext) -> Explanation:
    """Return a Pod's story in plain words."""
    first = _first(pod, around)
    trace = _trace(slow_attempt(pod) if pod.slow else pod.last)
    changed = _changed(pod, None, around)
    told = _CASES[pod.state](pod, around, MOST_LINES - len(first) - len(changed) - len(trace))
    lines = [*first, *told[: MOST_LINES - len(first) - len(changed) - len(trace)], *changed, *trace]
    return Explanation(tuple(lines[:MOST_LINES]), tuple(_details(pod, pod.last, around)))


def explain_attempt(pod: PodStory, number: int, around: PodContext) -> Explanation | None:
    """Return the story of one attempt; None when it is not known."""
    attempt = attempt_numbered(pod, number)
    if attempt is None:
        return None
    first = line(
        f"Attempt {number:,} of {pod.tries:,} of ",
        _name(pod),
        f", {clock(attempt.start_unix_nano)} UTC: ",
        TextPiece(safe(attempt.result, 60) or "no result", _result_style(attempt)),
        f", took {duration(attempt.duration)}.",
    )
    trace = _trace(attempt)
    changed = _changed(pod, attempt, around)
    lines = [first, *_answer(pod, attempt, around, MOST_LINES - 1 - len(changed) - len(trace)), *changed, *trace]
    return Explanation(tuple(lines[:MOST_LINES]), tuple(_details(pod, attempt, around)))


def _first(pod: PodStory, around: PodContext) -> list[Line]:
    waited = pod.waiting(around.now)
    tries = several(pod.tries, "attempt")
    last = f", last {ago(pod.last_try_unix_nano, around.now)}" if pod.last_try_unix_nano is not None else ""
    when = () if around.live else (dim(f" (as of {clock(around.now)} UTC, the end of what is held)"),)
    if pod.on_node is not None:
        return _node_lines(pod, pod.on_node, around)
    if pod.state == "deleted":
        return [_deleted(pod, around, tries, when)]
    if pod.state == "scheduled":
        on = f" on {safe(pod.node, 80)}" if pod.node else ""
        took = f" in {duration(waited)}" if waited is not None else ""
        slow = (": ", TextPiece("slow", SLOW.style)) if pod.slow else ()
        of = f" Median of {around.usual.attempts:,} attempts: {duration(around.usual.median)}."
        usual = of if around.usual.median is not None and around.usual.attempts > 1 else ""
        if not pod.tries:
            known = ": no attempt to schedule it is known; it may have been created with its node."
            return [line(_name(pod), " is ", TextPiece("scheduled", POD_STATES["scheduled"].style), on, known)]
        return [
            line(
                _name(pod),
                " was ",
                TextPiece("scheduled", POD_STATES["scheduled"].style),
                on,
                took,
                *slow,
                f". {tries}.",
                usual,
            )
        ]
    least = "" if pod.since_its_first else "at least "
    pending = "is Pending" + (f" for {least}{duration(waited)}" if waited is not None else "")
    state = TextPiece(pod.state, POD_STATES[pod.state].style)
    match pod.state:
        case "gated":
            waits = f" for {duration(waited)}" if waited is not None else ""
            tried = "the scheduler has not tried it. 0 attempts" if not pod.attempts else f"{tries}{last}"
            return [line(_name(pod), " is ", state, f"{waits}: {tried}.", *when)]
        case "preempting":
            on = f" on {safe(pod.node, 80)}" if pod.node else ""
            return [line(_name(pod), f" {pending}: ", state, f"{on}. {tries}{last}.", *when)]
        case "bind refused":
            by_server = pod.last is not None and read_bind_refusal(pod.last.bind_error).by_api_server
            by = " by the API server" if by_server else ""
            return [line(_name(pod), f" {pending}: ", state, f"{by}. {tries}{last}.", *when)]
        case "waiting" if not pod.attempts:
            return [line(_name(pod), f" {pending}: ", state, ", the scheduler has not tried it. 0 attempts.", *when)]
        case _:
            return [line(_name(pod), f" {pending}: ", state, f". {tries}{last}.", *when)]


def _deleted(pod: PodStory, around: PodContext, tries: str, when: tuple[TextPiece, ...]) -> Line:
    """Return when a Pod was deleted, and what it was then."""
    waited = pod.waiting(around.now)
    by = f" by {safe(around.deleted.who, 60)}" if around.deleted and around.deleted.who else ""
    at = f"{by} at {clock(pod.deleted_unix_nano)} UTC" if pod.deleted_unix_nano else by
    state = TextPiece("deleted", POD_STATES["deleted"].style)
    if pod.left_as == "scheduled":
        on = f"; it was scheduled on {safe(pod.node, 80)}" if pod.node else "; it had been scheduled"
        return line(_name(pod), " was ", state, f"{at}{on}. {tries}.", *when)
    least = "" if pod.since_its_first else "at least "
    pending = f", Pending for {least}{duration(waited)} until then" if waited is not None else ", Pending until then"
    left = str(pod.left_as)
    if pod.left_as == "waiting":
        left = "in an attempt" if pod.attempts else "never tried"
    return line(_name(pod), " was ", state, f"{at}{pending}: {left}. {tries}.", *when)


def _node_lines(pod: PodStory, story: NodeStory, around: PodContext) -> list[Line]:
    """Return what a Pod is on its node, and what fails there in the kubelet's words."""
    state = TextPiece("slow" if pod.slow else pod.state, SLOW.style if pod.slow else POD_STATES[pod.state].style)
    when = () if around.live else (dim(f" (as of {clock(around.now)} UTC, the end of what is held)"),)
    is_it = " is " if POD_STATES[story.state].settled else ": "
    first = line(_name(pod), is_it, state, f"{node_words(pod, story, around.now, around.deleted)}.", *when)
    failure = story.failure if story.failing else None
    ends = list(end_lines(story, around.deleted, around.preemptor))
    if failure is None:
        return [first, *ends]
    whose = f" for container {safe(failure.what, 60)}" if failure.what else ""
    over = "Last failure: " if story.state in ("terminating", "terminated") else ""
    reason = f"{over}{safe(failure.reason, 60) or 'the sync failed'}{whose}: "
    return [first, line(reason, strong(safe(failure.error, 300))), *ends]


def _name(pod: PodStory) -> TextPiece:
    return strong(safe(pod_title(pod)))


def _result_style(attempt: AttemptStory) -> Style:
    return "good" if attempt.result == "Success" else "bad" if attempt.result == "Error" else "held"


def _answer(pod: PodStory, attempt: AttemptStory, around: PodContext, most: int) -> list[Line]:
    if attempt.result == "Success":
        pace = around.plugin
        node = (
            f"It chose {safe(attempt.selected_node, 80)}." if attempt.selected_node else "Its node: not in this source."
        )
        return [*(why_node(pod, attempt) or [line(node)]), spent(attempt), *time_table(attempt, pace)]
    if attempt.bind_error:
        refusal = read_bind_refusal(attempt.bind_error)
        node = f": {safe(attempt.selected_node, 80)}" if attempt.selected_node else ""
        return [line(f"A node was found{node}. The bind was denied:"), line("  ", strong(safe(refusal.why, 400)))]
    if attempt.result == "Error":
        return [line("  ", strong(safe(attempt.message, 400) or "what went wrong is not in this source"))]
    words = cases.preemption_words(attempt.why.preemption)
    after = [line(f"Preemption: {words}.")] if words else []
    if attempt.nominated_node:
        after.append(line(f"It chose {safe(attempt.nominated_node, 80)}, and Pods to evict there."))
    return [*cases.no_node_fits(attempt, most - len(after) - 1), *after, spent(attempt)]


def _changed(pod: PodStory, attempt: AttemptStory | None, around: PodContext) -> list[Line]:
    """Return what became of the scheduler's configuration: the last change, or the one just before an attempt."""
    changes = configuration_changes(pod.attempts)
    if attempt is not None:
        return [change_line(change, around.changer) for change in changes if change.after is attempt]
    return [change_line(changes[-1], around.changer, len(changes) - 1)] if changes else []


def _trace(attempt: AttemptStory | None) -> list[Line]:
    if attempt is None:
        return []
    said = f": {safe(attempt.reason)}" if attempt.reason else ""
    match attempt.decision:
        case "sampled":
            became = f"kept by {safe(attempt.policy, 60)}{said}" if attempt.policy else f"kept{said}"
        case "":
            became = "no sampler's decision about it is in this source"
        case "dropped":
            became = f"dropped by {safe(attempt.policy, 60)}{said}"
        case _:
            became = f"not kept{said}"
    return [line(dim(f"Trace {attempt.trace_id.hex()}, attempt {attempt.number}: {became}"))]


def _details(pod: PodStory, attempt: AttemptStory | None, around: PodContext) -> Sequence[Line]:
    if attempt is None:
        return [line(f"uid {safe(pod.uid, 80)}")] if pod.uid else []
    lines: list[Line] = []
    if pod.attempts[0] is not attempt:
        lines += compare(pod.attempts[0], attempt)
    if len(attempt.why.rejections) > 1 or attempt.message:
        lines += _in_full(attempt)
    lines += score_lines(attempt)
    lines += list_attempts(pod)
    if pod.on_node is not None:
        if attempt.result == "Success" and attempt.why.nodes == 1:
            lines += why_node(pod, attempt)
        whole = lifetime_lines(pod, around.created, around.deleted, _ALL, around.preemptor)
        lines += [line("Its life (UTC, since its first moment, took):"), *whole]
    lines += where_the_time_went(pod, around.created)
    lines += [line(f"Linked, {call.kind}: {call_words(call)}, trace {call.trace_id.hex()}") for call in around.calls]
    if pod.life_trace_id:
        lines.append(line(f"Its life as one trace: {pod.life_trace_id.hex()}"))
    uid = safe(pod.uid, 80) or "not in this source"
    lines.append(line(dim(f"uid {uid}, profile {_profile(attempt)}{_made_with(attempt)}")))
    return lines


def _profile(attempt: AttemptStory) -> str:
    return safe(attempt.profile, 80) or "not in this source"


def _made_with(attempt: AttemptStory) -> str:
    return f", configuration {safe(attempt.generation, 64)}" if attempt.generation else ""


def _in_full(attempt: AttemptStory) -> list[Line]:
    lines = [line(f"Attempt {attempt.number} in full:")]
    for no in attempt.why.rejections:
        count = "" if no.nodes is None else f"{no.nodes:,} "
        names = cases.names_of(no, 10)
        status = f" ({safe(no.status, 60)})" if no.status else ""
        lines.append(line("  ", strong(count), f"{safe(no.plugin, 60) or 'not named'}{status}: {safe(no.reason)}"))
        if names:
            lines.append(line(dim(f"      {names}")))
    if attempt.message:
        lines.append(line(f"  message: {safe(attempt.message, 1_000)}"))
    return lines
