"""How true the attempts are that `reconstruct` rebuilds: held against what was done and what the scheduler counted.

For each recorded run and set of sources: attempts found of those that the scheduler counted; how many of the found ones
are not known with all sources (invented); Pods whose results and reasons are those that `actions.jsonl` expects; bound
Pods whose node is right; and by how much beginnings and ends are off from the log's own lines, at -v=3 and higher.
"""

import gzip
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from podtrail.reconstruction import Correlator, Heard, LineCounts, Rebuilt, SchedulerLog, WatchReader, read_attempts

DATA = Path(__file__).parents[1] / "tests" / "data" / "kube-scheduler"
NEAR = 1_795_259_525_000_000_000
MS = 1_000_000
RUNS = ("v2-text", "v10-text", "v5-json")
ALL = ("log", "pods", "events")
SOURCES = (ALL, ("log",), ("pods", "events"), ("events",), ("pods",))
ENDS = ("Successfully bound pod to node", "Unable to schedule pod; no fit; waiting", "Error scheduling pod; retrying")
GROUP_ENDS = ("Unable to schedule pod belonging to a pod group; waiting",)
BEGINS = ("Attempting to schedule pod", "Attempting to schedule a pod belonging to a pod group")
LINE = re.compile(r'[IE](\d{4} \d\d:\d\d:\d\d\.\d{6}) .*?\] "((?:[^"\\]|\\.)*)".*?(?<!\w)pod="([^"]+)"')
ROW = "{:9} {:18} {:>9} {:>6} {:>6} {:>9} {:>11} {:>11} {:>14}"


def lines_of(name: str) -> list[bytes]:
    """Return a file of the runs."""
    return gzip.decompress((DATA / f"{name}.gz").read_bytes()).splitlines()


def rebuild(run: str, sources: Sequence[str]) -> list[Rebuilt]:
    """Return the attempts that some sources of a run give."""
    correlator, heard = Correlator(), list[Iterator[Heard]]()
    for source in sources:
        if source == "log":
            reader = SchedulerLog("log", NEAR, LineCounts())
            heard.append(chain(reader.read(lines_of(f"{run}.log")), reader.end()))
        else:
            heard.append(WatchReader(LineCounts()).read(lines_of(f"{run}.{source}.jsonl"), 1 << 26))
    merged = heapq.merge(*heard, key=attrgetter("time"))
    return [*(done for one in merged for done in correlator.feed(one)), *correlator.finish()]


def invented(found: list[Rebuilt], true: list[Rebuilt]) -> int:
    """Return how many have no counterpart within 50 ms of the same Pod and result."""
    ends: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in true:
        ends[one.identity.pod, one.draft.result].append(one.draft.end)
    strange = 0
    for one in found:
        of = ends[one.identity.pod, one.draft.result]
        nearest = min(of, key=lambda end: abs(end - one.draft.end), default=None)
        if nearest is None or abs(nearest - one.draft.end) > 50 * MS:
            strange += 1
        else:
            of.remove(nearest)
    return strange


def right(found: list[Rebuilt], actions: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many Pods have the results and reasons that are expected, and how many there are."""
    expectations = json.loads((DATA / "expectations.json").read_text())
    of: dict[str, list[Rebuilt]] = defaultdict(list)
    for one in found:
        of[one.identity.pod].append(one)
    pods = [action for action in actions if action["action"] == "create pod"]
    return sum(_right(pod["expect"], of[pod["pod"]], expectations) for pod in pods), len(pods)


def _right(expected: str, attempts: list[Rebuilt], expectations: dict[str, Any]) -> bool:
    if re.search(expectations["never tried"], expected):
        return not attempts
    reason = next((pattern for words, pattern in expectations["reasons"].items() if expected.startswith(words)), None)
    if reason and not (attempts and re.search(reason, attempts[0].draft.message)):
        return False
    placed = "bound" in expected and "none bound" not in expected and "may be bound" not in expected
    return not placed or bool(attempts and attempts[-1].draft.result == "Success")


def nodes(found: list[Rebuilt], run: str, actions: list[dict[str, Any]]) -> tuple[int, int]:
    """Return for how many bound Pods the selected node is that of the Pod, and how many were bound."""
    by_hand = {action["pod"] for action in actions if "never by the scheduler" in action.get("expect", "")}
    bound: dict[str, str] = {}
    for line in lines_of(f"{run}.pods.jsonl"):
        pod = json.loads(line).get("event", {}).get("object", {})
        if node := pod.get("spec", {}).get("nodeName"):
            bound[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = node
    chosen = {one.identity.pod: one.draft.node for one in found if one.draft.result == "Success"}
    wanted = {pod: node for pod, node in bound.items() if pod not in by_hand}
    return sum(chosen.get(pod) == node for pod, node in wanted.items()), len(wanted)


def off(found: list[Rebuilt], run: str) -> int:
    """Return by how much, at most, a beginning or an end is off from the log's own line, nanoseconds."""
    begun: dict[str, int] = {}
    logged: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for time, message, pod in _messages(run):
        if message in BEGINS:
            begun[pod] = time
        elif message in (*ENDS, *GROUP_ENDS) and pod in begun:
            logged[pod].append((begun.pop(pod), time))
    worst = 0
    for pod, times in logged.items():
        drafts = {one.draft.end: one.draft for one in found if one.identity.pod == pod}
        for start, end in times:
            draft = drafts[min(drafts, key=lambda known: abs(known - end))]
            worst = max(worst, abs(draft.start - start), abs(draft.end - end))
    return worst


def _messages(run: str) -> Iterator[tuple[int, str, str]]:
    for line in lines_of(f"{run}.log"):
        if line[:1] == b"{":
            told = json.loads(line)
            if isinstance(pod := told.get("pod"), dict):
                yield round(told["ts"] * MS), told["msg"], f"{pod['namespace']}/{pod['name']}"
        elif found := LINE.match(line.decode("utf-8", "replace")):
            moment = datetime.strptime(f"2026{found[1]} +0000", "%Y%m%d %H:%M:%S.%f %z").astimezone(UTC)
            yield int(moment.timestamp()) * 10**9 + moment.microsecond * 1000, found[2], found[3]


def main() -> None:
    """Print the figures."""
    print(ROW.format("RUN", "SOURCES", "ATTEMPTS", "OF", "SHARE", "INVENTED", "PODS RIGHT", "NODES RIGHT", "TIMES OFF"))
    for run in RUNS:
        actions = [json.loads(line) for line in lines_of(f"{run}.actions.jsonl")]
        page = (DATA / f"{run}.prom").read_bytes().splitlines()
        counted = Counter[str]()
        for one in read_attempts(page):
            counted[one.result] += one.attempts
        true = rebuild(run, ALL)
        for sources in SOURCES:
            found = rebuild(run, sources)
            pods, of_pods = right(found, actions)
            placed, of_placed = nodes(found, run, actions)
            timed = "log" in sources and not run.startswith("v2")
            print(
                ROW.format(
                    run,
                    ", ".join(sources),
                    len(found),
                    counted.total(),
                    f"{len(found) / counted.total():.0%}",
                    invented(found, true),
                    f"{pods}/{of_pods}",
                    f"{placed}/{of_placed}",
                    f"{off(found, run) / MS:.3f} ms" if timed else "-",
                )
            )


if __name__ == "__main__":
    main()
