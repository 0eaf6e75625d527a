"""Attempts while they happen: the same as from files, whatever the pieces, the delays and the restarts."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import Group, SpanView, split
from podtrail.reconstruction import LAG, LineCounts, SchedulerLog, Session, trace
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_795_259_500 * SECOND
RUNS = ("v2-text", "v10-text", "v5-json")
BOUND = (
    b'I1121 11:12:%02d.000000    4385 schedule_one.go:483] "Successfully bound pod to node" '
    b'pod="default/%s" node="n" evaluatedNodes=1 feasibleNodes=1\n'
)


@dataclass(frozen=True)
class Coming:
    """Something that comes to a session."""

    at: int
    piece: bytes = b""
    told: dict[str, Any] | None = None

    def give(self, session: Session) -> None:
        if self.told is None:
            session.log("kube-scheduler.log", self.piece, self.at)
        elif "list" in self.told:
            session.listed(self.told["list"], self.at)
        else:
            session.watched(self.told["event"], self.at)


def advance(session: Session, until: int) -> Iterator[Group]:
    """Let time pass as a driver does, and hold the session to the law of deadlines."""
    while (due := session.deadline()) is not None and due <= until:
        yield from session.expire(due)
        after = session.deadline()
        assert after is None or after > due


def follow(session: Session, coming: Iterable[Coming]) -> Iterator[Group]:
    """Give a session what comes, and yield the attempts."""
    for one in coming:
        yield from advance(session, one.at)
        one.give(session)


def logged(lines: list[bytes]) -> Iterator[Coming]:
    """Yield the lines of a log at about the time at which they were written."""
    now = START
    for line in lines:
        reader = SchedulerLog("log", START, LineCounts())
        for told in reader.read([line]):
            now = max(now, told.time)
        yield Coming(now, line + b"\n")


def watched(lines: list[bytes]) -> Iterator[Coming]:
    for line in lines:
        told = json.loads(line)
        yield Coming(int(told.pop("arrivalUnixNano")), told=told)


@cache
def all_of(runs: Any, run: str) -> list[Coming]:
    coming = [*logged(runs.lines(f"{run}.log"))]
    coming += [one for name in ("pods", "events") for one in watched(runs.lines(f"{run}.{name}.jsonl"))]
    return sorted(coming, key=attrgetter("at"))


def told(groups: Iterable[Group]) -> Counter[tuple[bytes, bytes]]:
    return Counter((group.trace_id, group.spans) for group in groups)


def root_of(group: Group) -> SpanView:
    return SpanView(split(group.spans)[-1])


@pytest.mark.parametrize("run", RUNS)
def test_attempts_are_those_that_files_give(runs: Any, run: str) -> None:
    session = Session(START)
    coming = all_of(runs, run)
    groups = [*follow(session, coming), *session.drain(coming[-1].at)]
    assert told(groups) == told(map(trace, runs.of(run, "log", "pods", "events").attempts))


def test_an_attempt_is_told_seconds_after_it_has_ended(runs: Any) -> None:
    session = Session(START)
    for one in all_of(runs, "v5-json"):
        for group in advance(session, one.at):
            assert root_of(group).end > one.at - 40 * SECOND
        one.give(session)


@settings(max_examples=large(2, 5))
@given(st.integers(0, 1 << 32), st.integers(300, 9000))
def test_pieces_and_delays_change_nothing(runs: Any, seed: int, size: int) -> None:
    rng = random.Random(seed)
    coming = []
    rest = b""
    for one in all_of(runs, "v5-json"):
        if one.told is not None:
            coming.append(Coming(one.at + rng.randrange(LAG // 2), told=one.told))
            continue
        rest += one.piece
        while rest and (len(rest) >= size or rng.random() < 0.3):
            piece, rest = rest[:size], rest[size:]
            coming.append(Coming(one.at + LAG // 4, piece))
    coming.append(Coming(coming[-1].at, rest))
    ordered = sorted(coming, key=attrgetter("at"))
    session = Session(START)
    groups = [*follow(session, ordered), *session.drain(ordered[-1].at)]
    expected = {one.identity.trace_id for one in runs.of("v5-json", "log", "pods", "events").attempts}
    assert Counter(group.trace_id for group in groups) == Counter(expected)


def pods_at(coming: list[Coming]) -> dict[str, Any]:
    """Return the list of Pods as the API server would give it after all that has come."""
    pods: dict[str, Any] = {}
    for one in coming:
        for change, item in changes(one.told or {}):
            if item.get("kind") == "Pod":
                pods.pop(item["metadata"]["uid"], None)
                if change != "DELETED":
                    pods[item["metadata"]["uid"]] = item
    return {"kind": "PodList", "items": [*pods.values()]}


def changes(told: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "event" in told:
        yield told["event"]["type"], told["event"]["object"]


@pytest.mark.parametrize(
    ("run", "share"),
    [("v2-text", 0.6), ("v10-text", 0.3), ("v5-json", 0.5)],
)
def test_a_restart_tells_every_attempt_once_and_as_without_it(runs: Any, run: str, share: float) -> None:
    coming = all_of(runs, run)
    at = int(len(coming) * share)
    before, after = coming[:at], coming[at:]
    first = Session(START)
    groups = [*follow(first, before), *first.expire(before[-1].at)]
    state = json.loads(json.dumps(first.checkpoint(before[-1].at)))
    second = Session(before[-1].at, state)
    second.listed(pods_at(before), before[-1].at)
    second.log("kube-scheduler.log", b"".join(one.piece for one in before), before[-1].at)
    for one in before:
        if one.told and changes_of_kind(one.told, "Event"):
            second.watched(one.told["event"], before[-1].at)
    groups += [*follow(second, after), *second.drain(coming[-1].at)]
    expected = {one.identity.trace_id for one in runs.of(run, "log", "pods", "events").attempts}
    assert Counter(group.trace_id for group in groups) == Counter(expected)


def changes_of_kind(told: dict[str, Any], kind: str) -> bool:
    return any(item.get("kind") == kind for _, item in changes(told))


@pytest.mark.parametrize("damage", [{"version": 2}, {"version": 1}, {"version": 1, "toldUntilUnixNano": "x"}])
def test_a_checkpoint_that_is_none_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a checkpoint"):
        Session(START, damage)


def test_what_events_tell_while_another_replica_leads_is_its_own_story(runs: Any) -> None:
    session = Session(START)
    waiting = b'I1121 11:12:05.000000 4385 leaderelection.go:258] "Attempting to acquire leader lease..." lock="l"\n'
    session.log("kube-scheduler.log", waiting, START)
    coming = [*watched(runs.lines("v5-json.events.jsonl"))]
    assert not [*follow(session, coming), *session.drain(coming[-1].at)]
    assert session.outcome.notes["attempts of another scheduler, which was the leader"] > 10


def test_a_scheduler_that_becomes_leader_is_told_of(runs: Any) -> None:
    session = Session(START)
    now = START + 30 * SECOND
    for words in (b"Attempting to acquire leader lease...", b"Successfully acquired lease"):
        session.log("log", b'I1121 11:12:05.000000 4385 leaderelection.go:258] "%s" lock="l"\n' % words, now)
    coming = [*watched(runs.lines("v5-json.events.jsonl"))]
    assert [*follow(session, coming), *session.drain(coming[-1].at)]


def told_by_watches_after(runs: Any, *log: bytes) -> int:
    """Return how many attempts are told that only watches tell of, after a log that says no more than this."""
    session = Session(START)
    for line in log:
        session.log("log", line, START)
    coming = [*watched(runs.lines("v5-json.events.jsonl"))]
    return len([*follow(session, coming), *session.drain(coming[-1].at)])


VERBOSE = b'I1121 11:11:59.000000 4385 flags.go:64] FLAG: --v="%d"\n'
STARTS = b'I1121 11:12:0%d.000000 %d server.go:170] "Starting Kubernetes Scheduler" version="v1.37.1"\n'


@pytest.mark.parametrize("verbosity", [2, 5])
def test_what_happens_after_a_leader_was_killed_is_not_its_own_story(runs: Any, verbosity: int) -> None:
    waits, leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    assert not told_by_watches_after(runs, VERBOSE % verbosity, STARTS % (0, 4385), waits, leads)


def test_a_leader_whose_attempts_have_no_lines_is_told_of_by_watches(runs: Any) -> None:
    waits, leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    assert told_by_watches_after(runs, VERBOSE % 1, STARTS % (0, 4385), waits, leads)


def test_a_scheduler_that_was_a_leader_and_starts_again_is_none_until_it_says_so(runs: Any) -> None:
    waits, leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    life = VERBOSE % 0, STARTS % (0, 4385), waits, leads
    assert told_by_watches_after(runs, *life)
    assert not told_by_watches_after(runs, *life, VERBOSE % 0, STARTS % (3, 4390))


def test_a_restart_with_less_verbosity_is_told_of_by_watches(runs: Any) -> None:
    waits, leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    life = VERBOSE % 2, STARTS % (0, 4385), waits, leads, BOUND % (3, b"a")
    again = STARTS % (4, 4390), elected(5, b"Attempting to acquire leader lease..."), leads
    assert told_by_watches_after(runs, *life) == 1
    quiet = told_by_watches_after(runs, STARTS % (0, 4385), waits, leads)
    assert told_by_watches_after(runs, *life, *again) == 1 + quiet


def became(words: str, at: int) -> dict[str, Any]:
    """Return an Event of a lease, as client-go records it."""
    lease = {"kind": "Lease", "namespace": "kube-system", "name": "kube-scheduler"}
    stamp = f"2026-11-21T11:{12 + at // 60}:{at % 60:02}Z"
    told = {"reason": "LeaderElection", "note": words, "deprecatedLastTimestamp": stamp}
    return {"type": "ADDED", "object": {"kind": "Event", "regarding": lease, **told}}


def pulled(at: int) -> dict[str, Any]:
    """Return an Event of a kubelet."""
    about = {"kind": "Pod", "namespace": "d", "name": "other", "uid": "other"}
    told = {"reason": "Pulled", "note": "done", "eventTime": f"2026-11-21T11:{12 + at // 60}:{at % 60:02}.000000Z"}
    return {"type": "ADDED", "object": {"kind": "Event", "regarding": about, **told}}


def bound_unseen(session: Session, at: int, host: str = "") -> int:
    """Have watches show that a Pod was bound in a second after 11:12; return how many attempts that gives."""
    name, time = f"p{at}", START + (20 + at) * SECOND
    host, _, leader = host.partition(", and ")
    if leader:
        session.watched(became(leader, at - 3), time - 3 * SECOND)
    meta = {"name": name, "namespace": "d", "uid": name, "creationTimestamp": "2026-11-21T11:12:00Z"}
    pod = {"kind": "Pod", "metadata": meta, "spec": {"schedulerName": "default-scheduler"}}
    session.watched({"type": "ADDED", "object": pod}, time - 1)
    if host:
        about = {"kind": "Pod", "name": name, "namespace": "d", "uid": name}
        told = {"regarding": about, "reason": "Scheduled", "note": f"Successfully assigned d/{name} to n"}
        who = {"reportingController": "default-scheduler", "reportingInstance": f"default-scheduler-{host}"}
        stamp = f"2026-11-21T11:{12 + at // 60}:{at % 60:02}.000000Z"
        session.watched({"type": "ADDED", "object": {"kind": "Event", "eventTime": stamp, **told, **who}}, time)
    pod = {**pod, "spec": {"schedulerName": "default-scheduler", "nodeName": "n"}}
    session.watched({"type": "MODIFIED", "object": pod}, time + 1)
    return len([*advance(session, time + 60 * SECOND)])


LEADER = b'leader_election_master_status{name="kube-scheduler"} %d\n'


@pytest.mark.parametrize(
    ("at", "host", "page", "line", "own"),
    [
        (12, "", b"", b"", 1),  # no other replica can be leader yet
        (100, "", b"", b"", 1),  # Events are watched, and none says that another replica leads
        (100, "cp1", b"", b"", 1),
        (100, "cp2", b"", b"", 0),
        (12, "cp2", b"", b"", 0),
        (100, "cp1, and p2 became leader", b"", b"", 0),
        (12, "cp1, and p2 became leader", b"", b"", 0),
        (100, "cp1, and p1 became leader", b"", b"", 1),
        (100, "", LEADER % 1, b"", 1),
        (100, "", LEADER % 0, b"", 0),
        (100, "", b"", b'W1121 11:13:38.000000 4385 a.go:1] "Something" of="the same process"\n', 1),
        (100, "", b"", b'I1121 11:13:38.000000 4385 a.go:1] "Requested to terminate, exiting"\n', 0),
    ],
)
def test_attempts_of_a_leader_that_logs_less_while_it_runs_are_told(
    at: int, host: str, page: bytes, line: bytes, own: int
) -> None:
    """`PUT /debug/flags/v` leaves no line: Events, metrics and other lines show whose attempts they are."""
    session = Session(START)
    leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    bound = BOUND % (3, b"a")
    session.log("log", b"".join((*leads, bound)), START + 23 * SECOND)
    about = {"kind": "Pod", "name": "a", "namespace": "default", "uid": "u"}
    event = {"kind": "Event", "regarding": about, "reason": "Scheduled", "eventTime": "2026-11-21T11:12:03.000000Z"}
    who = {"reportingController": "default-scheduler", "reportingInstance": "default-scheduler-cp1"}
    session.watched({"type": "ADDED", "object": {**event, **who}}, START + 23 * SECOND)
    session.watched(became("p1 became leader", 2), START + 23 * SECOND)
    assert len([*advance(session, START + 31 * SECOND)]) == 1
    if line:
        session.log("log", line, START + (at + 20) * SECOND)
    session.scraped(page, START + (at + 15) * SECOND)
    assert bound_unseen(session, at, host) == own


WAITS, LEADS, LOST = (
    b"Attempting to acquire leader lease...",
    b"Successfully acquired lease",
    b"Requested to terminate, exiting",
)
OTHER_LOG = "/var/log/pods/kube-system_kube-scheduler-cp2_2/kube-scheduler/0.log"


@pytest.mark.parametrize(
    ("words", "metrics", "other", "own"),
    [
        ([(1, WAITS), (2, LEADS), (31, LOST)], [], [], 1),
        ([(1, WAITS), (2, LEADS), (29, LOST)], [], [], 0),
        ([(1, WAITS), (2, LEADS)], [(20, 1), (31, 0)], [], 1),
        ([(1, WAITS), (2, LEADS)], [(20, 1), (29, 0)], [], 0),
        ([(1, WAITS), (31, LEADS)], [], [], 0),
        ([(1, WAITS), (29, LEADS)], [], [], 1),
        ([], [(31, 0)], [], 0),  # what it was before it said so is not known: it was no leader since
        ([(1, WAITS), (2, LEADS)], [], [(29, b"")], 1),  # another replica starts
        ([(1, WAITS), (2, LEADS), (29, b"")], [], [], 0),  # its own process is gone
        ([(1, WAITS), (2, LEADS), (10, LOST)], [], [(1, WAITS), (12, LEADS)], 1),
    ],
)
def test_whose_an_attempt_is_is_decided_by_its_time_not_by_when_it_is_weighed(
    words: list[tuple[int, bytes]], metrics: list[tuple[int, int]], other: list[tuple[int, bytes]], own: int
) -> None:
    """The Pod is bound at second 30; attempts are weighed seconds later, when more is known."""
    session = Session(START)
    for source, said in ((OTHER_LOG.replace("2", "1"), words), (OTHER_LOG, other)):
        lines = [elected(at, each) if each else STARTS.replace(b"0%d.", b"%d.") % (at, 4390) for at, each in said]
        session.log(source, b"".join(lines), START + 55 * SECOND)
    for at, leads in metrics:
        session.scraped(LEADER % leads, START + (20 + at) * SECOND)
    assert bound_unseen(session, 30) == own


@pytest.mark.parametrize(
    ("event", "host", "own"),
    [
        (became("cp1_4f1c became leader", 2), "cp1", 1),
        (became("cp1_4f1c became leader", 2), "cp2", 0),
        (became("cp2_93aa became leader", 60), "cp2", 0),
        (pulled(1), "cp1", 1),  # Events are read since then, and none says that another replica leads
        (pulled(60), "cp1", 0),
        (None, "cp1", 0),
    ],
)
def test_events_that_show_no_attempt_of_the_scheduler_show_whether_it_leads(event: Any, host: str, own: int) -> None:
    session = Session(START)
    leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    session.log("log", b"".join((*leads, BOUND % (3, b"a"))), START + 23 * SECOND)
    if event:
        session.watched(event, START + 90 * SECOND)
    assert len([*advance(session, START + 100 * SECOND)]) == 1
    assert bound_unseen(session, 100, host) == own


def test_without_events_an_attempt_that_has_no_line_is_the_leaders_own() -> None:
    session = Session(START)
    leads = elected(1, b"Attempting to acquire leader lease..."), elected(2, b"Successfully acquired lease")
    session.log("log", b"".join((*leads, BOUND % (3, b"a"))), START + 23 * SECOND)
    assert len([*advance(session, START + 31 * SECOND)]) == 1
    assert bound_unseen(session, 100) == 1


OTHERS = [
    b'I1121 11:12:06.000000 4385 leaderelection.go:258] "Attempting to acquire leader lease..." lock="%s"\n',
    b"I1121 11:12:06.000000 4385 leaderelection.go:258] attempting to acquire leader lease %s...\n",
    b"E1121 11:12:06.000000 4385 leaderelection.go:330] failed to renew lease %s: timed out waiting\n",
    b"I1121 11:12:06.000000 4385 leaderelection.go:285] failed to renew lease %s: context deadline exceeded\n",
]


@pytest.mark.parametrize("line", OTHERS)
@pytest.mark.parametrize("lease", [b"kube-system/k3s-cloud-controller-manager", b"kube-system/kube-controller-manager"])
def test_the_lease_of_another_component_in_a_combined_log_decides_nothing(runs: Any, line: bytes, lease: bytes) -> None:
    quiet = told_by_watches_after(runs)
    assert quiet > 10
    assert told_by_watches_after(runs, line % lease) == quiet
    assert not told_by_watches_after(runs, OTHERS[1] % b"kube-system/kube-scheduler")
    other = (
        OTHERS[1] % b"kube-system/kube-scheduler",
        b"I1121 11:12:07.000000 4385 l.go:1] successfully acquired lease ",
    )
    assert not told_by_watches_after(runs, other[0], other[1] + lease + b"\n")


@pytest.mark.parametrize("lease", [b"kube-system/my-scheduler", b"batch/placement"])
def test_a_lease_of_another_name_may_be_the_schedulers(runs: Any, lease: bytes) -> None:
    assert not told_by_watches_after(runs, OTHERS[0] % lease)


def added(at: int) -> dict[str, Any]:
    """Return the event of a Pod's creation in a second after 11:12."""
    meta = {"name": "a", "namespace": "default", "uid": "u-1", "creationTimestamp": f"2026-11-21T11:12:{at:02}Z"}
    return {"type": "ADDED", "object": {"kind": "Pod", "metadata": meta, "spec": {"schedulerName": "s"}}}


def elected(at: int, words: bytes) -> bytes:
    return b'I1121 11:12:%02d.000000 4385 leaderelection.go:258] "%s" lock="l"\n' % (at, words)


@pytest.mark.parametrize(("leader_since", "certain"), [(5, True), (15, False)])
def test_the_number_of_an_attempt_is_certain_only_if_nobody_else_led_since_the_pod_came(
    leader_since: int, certain: bool
) -> None:
    minute = START + 20 * SECOND
    session = Session(minute)
    session.log("log", elected(1, b"Attempting to acquire leader lease..."), minute + SECOND)
    if certain:
        session.log("log", elected(leader_since, b"Successfully acquired lease"), minute + leader_since * SECOND)
    session.watched(added(10), minute + 10 * SECOND)
    if not certain:
        session.log("log", elected(leader_since, b"Successfully acquired lease"), minute + leader_since * SECOND)
    session.log("log", BOUND % (20, b"a"), minute + 20 * SECOND)
    (group,) = session.drain(minute + 30 * SECOND)
    inferred = root_of(group).attributes["podtrail.inferred"]
    assert isinstance(inferred, list)
    assert any(str(line).startswith("attempts: ") for line in inferred) is not certain


def test_a_rotated_log_goes_on_in_another_file_and_a_line_cut_by_it_spoils_no_other() -> None:
    session = Session(START)
    now = START + 40 * SECOND
    session.log("log", BOUND % (7, b"a") + (BOUND % (8, b"b"))[:40], now)
    session.end_of_log("log", now)
    session.log("log", BOUND % (9, b"c"), now)
    names = [root_of(group).attributes["k8s.pod.name"] for group in session.drain(now)]
    assert names == ["a", "c"]


def test_a_value_of_several_lines_is_told_though_no_line_follows() -> None:
    session = Session(START)
    now = START + 40 * SECOND
    line = b'E1121 11:12:09.000000 4385 s.go:1] "Error scheduling pod; retrying" err=<\n\tno\n > pod="default/a"\n'
    session.log("log", line, now)
    (group,) = advance(session, now + 60 * SECOND)
    assert root_of(group).status.message == "no"


def test_a_clock_that_lies_holds_up_nothing_but_itself() -> None:
    session = Session(START)
    now = START + 40 * SECOND
    far = json.dumps(
        {"ts": 4e12, "msg": "Successfully bound pod to node", "pod": {"name": "far", "namespace": "d"}},
        separators=(",", ":"),
    )
    session.log("far", far.encode() + b"\n", now)
    session.log("log", BOUND % (9, b"near"), now)
    names = {root_of(group).attributes["k8s.pod.name"] for group in advance(session, now + 60 * SECOND)}
    assert names == {"far", "near"}
    assert session.deadline() is None


def test_attempts_that_only_the_schedulers_own_count_knows_are_counted() -> None:
    page = b'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} %d\n'
    session = Session(START)
    now = START + 40 * SECOND
    assert not session.scraped(page % 10)
    session.log("log", BOUND % (9, b"a"), now)
    session.drain(now)
    assert session.scraped(page % 13) == {"Success": 2}
    assert not session.scraped(page % 1)  # the scheduler started anew


@given(st.lists(st.tuples(st.binary(max_size=400), st.integers(0, 5 * SECOND)), max_size=30))
def test_any_bytes_in_any_pieces_are_read_through(pieces: list[tuple[bytes, int]]) -> None:
    session, now = Session(START), START
    groups: list[Group] = []
    for piece, pause in pieces:
        now += pause
        session.log("log", piece, now)
        groups += advance(session, now)
    assert not groups + session.drain(now)
    assert session.deadline() is None


@pytest.mark.parametrize("events", [("first",), ("second",), ("first", "second"), ()])
@pytest.mark.parametrize(("deleted", "added", "tried"), [(33, 95, 100), (5, 8, 9), (35, 38, 13)])
def test_attempts_for_pods_of_one_name_are_told_apart_however_soon_it_comes_back(
    events: tuple[str, ...], deleted: int, added: int, tried: int
) -> None:
    """Deleted with grace period 0 and made again; Events come last, and the watch may be behind. Milliseconds."""
    session = Session(START)
    now = START + 30 * SECOND  # 11:12:10

    def pod(change: str, uid: str, at: int, node: str = "") -> None:
        metadata = {"namespace": "default", "name": "db-0", "uid": uid, "creationTimestamp": "2026-11-21T11:12:10Z"}
        told = {"kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "default-scheduler", "nodeName": node}}
        session.watched({"type": change, "object": told}, now + at * 1_000_000)

    pod("ADDED", "first", -5)
    pod("MODIFIED", "first", 1, "n")
    pod("DELETED", "first", deleted, "n")
    pod("ADDED", "second", added)
    pod("MODIFIED", "second", added + 3, "n")
    bound = BOUND % (10, b"db-0")
    session.log("log", bound + bound.replace(b"10.000000", b"10.%03d000" % tried), now + 150_000_000)
    for uid in events:
        regarding = {"kind": "Pod", "namespace": "default", "name": "db-0", "uid": uid}
        event = {"reason": "Scheduled", "note": "Successfully assigned default/db-0 to n", "regarding": regarding}
        at = 0 if uid == "first" else tried
        told = event | {"kind": "Event", "eventTime": f"2026-11-21T11:12:10.{at:03}100Z"}
        session.watched({"type": "ADDED", "object": told}, now + SECOND)
    roots = map(root_of, session.drain(now + 60 * SECOND))
    assert [root.attributes["k8s.pod.uid"] for root in roots] == ["first", "second"]
