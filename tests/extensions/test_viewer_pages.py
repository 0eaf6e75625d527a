import json
import re
import time
from pathlib import Path

import pytest
from podtrail_extensions.viewer import FACTORY

from podtrail.component import Context, LiveSource, StartError
from podtrail.otlp import Batch, Link, Value
from podtrail.recording import Record, read_recording
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing, get

PREVIOUS = {"podtrail.link.type": "previous-attempt"}
UID = MadeAttempt().uid


def chain(kept: int = 3) -> list[Batch]:
    """Attempts of one Pod, each linked to the one before; those after `kept` are dropped."""
    batches = []
    for n in range(1, 5):
        before = no_room(number=n - 1)
        links = [Link(before.trace_id, before.root_id, PREVIOUS)] if n > 1 else []
        attempt = no_room(number=n, start=START + n * 10**9, links=links)
        batches.append(attempt.batch() if n <= kept else attempt.batch("not_sampled", "", "no policy said yes"))
    return batches


def test_the_list_shows_who_waits_and_why(viewing: Viewing) -> None:
    page = get(viewing, "/", *chain())
    assert "unschedulable" in page
    assert "31 NodeAffinity, 2 NodeResourcesFit, 1 more" in page
    assert f'href="/pods/{UID}"' in page


def test_scheduled_pods_show_only_when_asked_for(viewing: Viewing) -> None:
    scheduled = MadeAttempt().batch("not_sampled", "")
    assert "Nothing to look at" in get(viewing, "/", scheduled)
    assert f"/pods/{UID}" in get(viewing, "/?state=all", scheduled)
    assert f"/pods/{UID}" in get(viewing, "/?state=scheduled&q=default/web", scheduled)


def test_a_search_finds_a_pod_whatever_the_state_and_says_that_it_is_another(viewing: Viewing) -> None:
    batches = [*chain(), MadeAttempt(uid="scheduled-one", name="web-1").batch()]
    page = get(viewing, "/?q=web-1", *batches)
    assert "/pods/scheduled-one" in page
    assert re.search(r"In other states.*1 Pod found, none that is <q><bdi>to look at</bdi></q>", page)
    assert "No Pod matches" not in page
    both = get(viewing, "/?q=WEB&state=unschedulable", *batches)
    assert both.index(f"/pods/{UID}") < both.index("In other states") < both.index("/pods/scheduled-one")
    assert "none that is" not in both
    assert "In other states" not in get(viewing, "/", *batches)
    assert "In other states" not in get(viewing, "/?q=web&state=all", *batches)


def test_the_api_tells_pods_of_the_state_from_those_of_others(viewing: Viewing) -> None:
    batches = [*chain(), *(MadeAttempt(uid=f"scheduled-{n:03}", name=f"web-{n}").batch() for n in range(1, 151))]
    told = json.loads(get(viewing, "/api/v1/pods?q=web&state=unschedulable", *batches))
    assert [pod["key"] for pod in told["pods"]] == [UID]
    assert (told["matching"], len(told["elsewhere"]), told["matchingElsewhere"]) == (1, 100, 150)


@pytest.mark.parametrize(
    ("path", "batches", "words"),
    [
        ("/", [], "No spans yet"),
        ("/?q=nothing", chain(), "No Pod matches"),
        ("/?q=nothing", chain(), "Clear the filter"),
    ],
)
def test_an_empty_list_says_what_to_do(viewing: Viewing, path: str, batches: list[Batch], words: str) -> None:
    assert words in get(viewing, path, *batches)


def test_a_pod_page_names_plugins_nodes_and_every_attempt(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}", *chain())
    for words in ("no node fits", "TaintToleration", "cp-0", "tight0", "21 more", "not kept (no policy said yes)"):
        assert words in page
    assert page.count('class="open row"') == 3


def test_a_long_row_of_equal_answers_is_folded_and_can_be_opened(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}", *(no_room(number=n, start=START + n * 10**9).batch() for n in range(1, 13)))

    assert f'<a href="/pods/{UID}/attempts?from=2">2 to 11</a>: same answer' in page
    assert f'<a class="open" href="/pods/{UID}/attempts">all 12 attempts held</a>' in page


def test_attempts_that_are_not_shown_are_told_from_those_with_the_same_answer(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}", *(no_room(number=n, start=START + n * 10**9).batch() for n in range(1, 55)))

    assert "54; listed are the first and the latest" in page
    assert "2 to 53</a>: same answer<" in page
    assert 'href="/pods/1f3c0a52/attempts/6"' not in page
    assert "all 54 attempts held" in page


def test_attempts_with_another_answer_are_not_told_to_have_the_same(viewing: Viewing) -> None:
    others = [MadeAttempt(number=n, result="Error", start=START + n * 10**9) for n in (2, 3)]
    same = [no_room(number=n, start=START + n * 10**9) for n in (1, *range(4, 55))]
    page = get(viewing, f"/pods/{UID}", *(attempt.batch() for attempt in [*others, *same]))

    assert "2 to 5</a>: not listed" in page


@pytest.mark.parametrize(
    ("made", "label"),
    [
        (MadeAttempt(node="n1"), "node"),
        (MadeAttempt(result="Error", node="n1", bind_error="conflict"), "last tried"),
        (MadeAttempt(result="Unschedulable", nominated="n1"), "nominated for"),
    ],
)
def test_a_node_is_called_what_it_is_to_the_pod(viewing: Viewing, made: MadeAttempt, label: str) -> None:
    page = get(viewing, f"/pods/{UID}", made.batch())

    assert f'<dt>{label}</dt><dd><a href="/nodes/n1"><bdi>n1</bdi></a></dd>' in page


def test_why_a_node_was_chosen_stands_on_the_pages_of_pod_and_attempt(viewing: Viewing) -> None:
    scores: dict[str, Value] = {
        "scheduler.nodes.evaluated": 7,
        "scheduler.score.nodes": ["node-07", "<b>node-3</b>"],
        "scheduler.score.totals": [1_287, 1_273],
        "scheduler.score.plugin.ImageLocality": [14, 0],
        "scheduler.score.plugins_cut": 1,
    }
    made = MadeAttempt(scores=scores)
    for path in (f"/pods/{UID}", f"/traces/{made.trace_id.hex()}"):
        page = get(viewing, path, made.batch())
        assert "node-07 won with 1,287 points, 14 more than &lt;b&gt;node-3&lt;/b&gt;: ImageLocality +14." in page
        assert '<th scope="row"><bdi>ImageLocality</bdi></th><td class="num" data-label="node-07">14</td>' in page
        assert "7 nodes were scored, the best 2 are shown. 1 more plugin scored." in page
    assert "Why this node" not in get(viewing, f"/pods/{UID}", MadeAttempt().batch())


def test_the_page_of_a_pod_tells_its_way_on_its_node_and_where_the_time_went(viewing: Viewing) -> None:
    recording = Path(__file__).parents[1] / "data" / "recordings" / "node" / "podtrail" / "spans.otlp.zst"
    records = [record for record in read_recording(recording) if isinstance(record, Record)]
    page = get(
        viewing,
        "/pods/177ab38d-798e-4f19-ac9e-8876b18b5e24",
        *(Batch(record.intake.groups, record.arrival) for record in records),
    )
    assert "Terminated: it never ran on node-1. 1 attempt." in page
    way = page[page.index("Its way") :]
    for words in (
        "created by admin (its user agent)",
        "attempt 1: Success, node-1",
        "pull of image 127.0.0.1:1/missing:1 fails",
        "back-off, until image 127.0.0.1:1/missing:1 is pulled again",
    ):
        assert words in way
    assert '<span class="fail">failed</span>' in way


def test_a_no_that_is_not_about_nodes_counts_none(viewing: Viewing) -> None:
    refused = [MadeAttempt(number=n, result="Unschedulable", message="not today", start=START + n) for n in (1, 2)]
    page = get(viewing, f"/pods/{UID}", *(attempt.batch() for attempt in refused))

    assert '<td class="num dim" data-label="nodes in #1">-</td>' in page
    assert '<td class="num" data-label="nodes in #2"><b>-</b></td>' in page


def test_a_trace_id_in_the_search_leads_to_the_trace(viewing: Viewing) -> None:
    attempt = no_room()
    held = get(viewing, f"/?q={attempt.trace_id.hex().upper()}", attempt.batch())
    gone = get(viewing, f"/?q={'5' * 32}", attempt.batch(), status=404)

    assert "SchedulePod" in held
    assert 'id="search"' not in held
    assert "Trace not held" in gone


def test_a_trace_links_both_ways_and_says_why_a_link_leads_nowhere(viewing: Viewing) -> None:
    first, second, third, last = (no_room(number=n) for n in (1, 2, 3, 4))
    page = get(viewing, f"/traces/{second.trace_id.hex()}", *chain())
    assert f"/traces/{first.trace_id.hex()}?span={first.root_id.hex()}" in page
    assert f"/traces/{third.trace_id.hex()}?span={third.root_id.hex()}" in page
    dropped = get(viewing, f"/traces/{last.trace_id.hex()}", *chain(), status=404)
    assert "not kept (no policy said yes)" in dropped
    assert "attempt 4 of default/web-0" in dropped
    assert f'href="/decisions/{last.trace_id.hex()}"' in dropped


async def test_a_span_asked_for_is_told_in_full(viewing: Viewing) -> None:
    async with viewing(*chain()) as (_viewer, browser):
        trace_id = no_room().trace_id
        async with browser.get(f"/api/v1/traces/{trace_id.hex()}") as answer:
            rows = (await answer.json())["trace"]["rows"]
        fit = next(row["spanId"] for row in rows if row["name"] == "plugin: NodeResourcesFit")
        async with browser.get(f"/traces/{trace_id.hex()}?span={fit}") as answer:
            page = await answer.text()
    assert "Insufficient cpu" in page
    assert "plugin rejected" in page


async def test_the_api_tells_what_the_pages_tell(viewing: Viewing) -> None:
    async with viewing(*chain()) as (_, browser):
        async with browser.get("/api/v1/pods") as answer:
            (row,) = (await answer.json())["pods"]
        async with browser.get(f"/api/v1/pods/{UID}") as answer:
            told = await answer.json()
        async with browser.get(f"/pods/{UID}") as answer:
            page = await answer.text()
    assert (row["key"], row["state"], row["tries"]) == (UID, "unschedulable", 4)
    assert told["sentence"].replace("'", "&#39;") in page
    assert all(attempt["fate"] in page for attempt in told["attempts"])
    for no in told["pod"]["attempts"][2]["why"]["rejections"]:
        assert no["plugin"] in page
        assert all(name in page for name in no["names"])


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/pods/unknown", 404, "This Pod is not held"),
        ("/traces/" + "0" * 32, 404, "not received"),
        ("/traces/xyz", 400, "32 hexadecimal digits"),
        ("/traces/" + "0" * 32 + "?span=1", 400, "16 hexadecimal digits"),
        ("/?sort=colour", 400, "sort is one of"),
        ("/?state=pending", 400, "state is one of to look at, all, slow"),
        ("/api/v1/pods?state=pending", 400, "state is one of"),
        ("/?after=-1", 400, "number of Pods"),
        ("/?q=" + "x" * 300, 400, "at most 256 characters"),
        ("/nowhere", 404, "no such page"),
        ("/api/v1/pods/unknown", 404, "not held"),
        ("/static/../site.py", 404, "no such page"),
    ],
)
def test_what_is_not_there_is_said_in_words(viewing: Viewing, path: str, status: int, words: str) -> None:
    assert words in get(viewing, path, status=status)


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ("default/nope", "kubectl -n default get events --field-selector involvedObject.name=nope"),
        ("nope", "kubectl get events --all-namespaces --field-selector involvedObject.name=nope"),
        (UID, f"kubectl get events --all-namespaces --field-selector involvedObject.uid={UID}"),
        ("de;fault/nope", ""),
    ],
)
def test_for_an_unknown_pod_the_cluster_is_asked_by_what_one_knows(viewing: Viewing, asked: str, command: str) -> None:
    page = get(viewing, f"/pods/{asked}", status=404)
    assert re.findall("<code>(kubectl.*?)</code>", page) == ([command] if command else [])


def test_an_unknown_pod_leads_to_those_with_nearly_its_name(viewing: Viewing) -> None:
    page = get(viewing, "/pods/elsewhere/web", *chain(), status=404)
    assert f'There is <a href="/pods/{UID}">' in page
    assert "There is" not in get(viewing, "/pods/elsewhere/worker", *chain(), status=404)


def test_the_id_of_a_trace_that_was_not_kept_leads_to_its_decision(viewing: Viewing) -> None:
    dropped = no_room(number=4)
    page = get(viewing, f"/?q={dropped.trace_id.hex()}", *chain())
    assert "no policy said yes" in page
    assert "<title>Decision" in page


async def test_a_thousand_pods_are_a_short_page_with_a_way_on(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser):
        for n in range(1_200):
            viewer.observe("traces", no_room(uid=f"uid-{n:05}", name=f"web-{n}").batch("dropped", "d"))
        async with browser.get("/") as answer:
            page = await answer.text()
        assert "1 to 100 of 1,200" in page
        assert len(page) < 80_000
        async with browser.get("/?after=1190") as answer:
            assert "1,191 to 1,200 of 1,200" in await answer.text()


def test_a_huge_trace_is_a_bounded_page(viewing: Viewing) -> None:
    from podtrail.otlp import encode_span, frame

    (group,) = no_room().groups()
    spans = [
        encode_span(trace_id=group.trace_id, span_id=n.to_bytes(8, "big"), name="x" * 100, start=n, end=n + 5)
        for n in range(1, 5_001)
    ]
    batch = Batch([group._replace(spans=frame(spans), span_count=5_000)], START)
    page = get(viewing, f"/traces/{group.trace_id.hex()}", batch)
    assert "spans 1 to 500 of 5,000" in page
    assert len(page) < 600_000


async def test_what_is_held_stays_within_its_bound_and_the_oldest_goes_first(viewing: Viewing) -> None:
    attempts = [no_room(uid=f"uid-{n}", name=f"web-{n}") for n in range(300)]
    async with viewing(*(attempt.batch() for attempt in attempts), max_mib=1) as (viewer, browser):
        assert viewer.store.size + viewer.stories.size <= 1 << 20
        assert 100 < len(viewer.store) < 300
        oldest, latest = (attempts[at].trace_id.hex() for at in (0, -1))
        async with browser.get(f"/traces/{oldest}") as answer:
            assert "older than what is held" in await answer.text()
        async with browser.get(f"/traces/{latest}") as answer:
            assert answer.status == 200


def test_a_source_with_another_clock_is_told_by_its_own_time(viewing: Viewing) -> None:
    assert 'data-label="Waiting">1 s</td>' in get(viewing, "/", no_room(duration=998 * 10**6).batch())


def test_a_source_with_our_clock_is_told_by_ours(viewing: Viewing) -> None:
    page = get(viewing, "/", no_room(start=time.time_ns() - 60 * 10**9, queue_wait_ms=0).batch())
    assert 'data-label="Waiting">1m</td>' in page


async def test_a_live_source_has_our_clock_also_when_its_latest_attempt_is_old(viewing: Viewing) -> None:
    async with viewing(from_pipelines=True) as (viewer, _):
        viewer.observe("traces", no_room().batch())
        assert not viewer.clock().live
        viewer.note(LiveSource())
        assert viewer.clock().live


async def test_a_port_in_use_is_a_start_error_that_names_it(viewing: Viewing) -> None:
    async with viewing() as (viewer, _):
        endpoint = viewer.page.removeprefix("http://").removesuffix("/")
        second = FACTORY.create(FACTORY.Config(endpoint=endpoint, otlp_endpoint="localhost:0"), Context(id="viewer"))
        with pytest.raises(StartError, match=f"^can't listen on {endpoint}"):
            async with second:
                pass


async def test_spans_are_taken_from_the_pipelines_where_that_is_asked_for(viewing: Viewing) -> None:
    async with viewing(from_pipelines=True) as (viewer, browser):
        assert viewer.otlp_endpoint == ""
        async with browser.get("/") as empty:
            assert "What the pipelines keep is shown here." in await empty.text()
        made = no_room()
        viewer.observe("traces", made.batch())
        async with browser.get(f"/traces/{made.trace_id.hex()}") as trace:
            page = await trace.text()
        assert trace.status == 200
        assert "Spans come from its own pipelines" in page
        assert viewer.store.spans == made.batch().span_count
