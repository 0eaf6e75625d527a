import asyncio
import json

import pytest

from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import START, MadeAttempt, No, no_room
from tests.extensions.asking import Viewing

S = 10**9
HOSTILE = '<b>"/..%2f'
BATCHES = (
    no_room().batch(),
    MadeAttempt(uid="bound", name="api-0", node="tight0", start=START + S).batch(),
    MadeAttempt(
        uid="odd", name="odd-0", result="Unschedulable", refusals=[No(plugin=HOSTILE, reason=HOSTILE, nodes=[HOSTILE])]
    ).batch(),
    MadeAttempt(uid="refused", name="frozen-0", result="Error", bind_error="denied: not today").batch(),
)


def get(viewing: Viewing, path: str, *, status: int = 200) -> str:
    async def main() -> str:
        async with viewing(*BATCHES) as (_, browser), browser.get(path) as answer:
            assert answer.status == status
            return await answer.text()

    return asyncio.run(main())


def test_nodes_are_listed_and_found_by_part_of_their_name(viewing: Viewing) -> None:
    page = get(viewing, "/nodes?q=TIGHT")
    assert 'href="/nodes/tight0"' in page
    assert "cp-0" not in page
    assert "1 to 2 of 2 found, of 14" in page
    told = json.loads(get(viewing, "/api/v1/nodes?q=tight0"))
    assert told["nodes"] == [
        {
            "node": "tight0",
            "pods": 1,
            "bound": 1,
            "refused": 1,
            "plugin": "NodeResourcesFit",
            "reason": "Insufficient cpu",
            "atLeast": False,
        }
    ]
    by_name = get(viewing, "/nodes?sort=node")
    assert 'aria-sort="ascending"><a href="/nodes?sort=node">Node</a>' in by_name
    assert by_name.index("/nodes/cp-0") < by_name.index("/nodes/tight0")
    assert "names about ten nodes of a refusal" in by_name


def test_a_node_says_who_refuses_it_and_which_pods_it_has(viewing: Viewing) -> None:
    page = get(viewing, "/nodes/tight0")
    for words in ("Insufficient cpu", 'href="/plugins/NodeResourcesFit"', "/pods/bound", "/pods/1f3c0a52"):
        assert words in page
    told = json.loads(get(viewing, "/api/v1/nodes/tight0"))
    assert (told["told"]["bound"], [pod["key"] for pod in told["pods"]]) == (1, ["bound"])


def test_a_pod_leads_to_the_node_it_is_on_and_to_who_refused_it(viewing: Viewing) -> None:
    assert 'href="/nodes/tight0"' in get(viewing, "/pods/bound")
    assert 'href="/plugins/NodeAffinity"' in get(viewing, "/pods/default/web-0")


def test_plugins_are_listed_with_refusals_and_times(viewing: Viewing) -> None:
    page = get(viewing, "/plugins?q=Taint")
    assert 'href="/plugins/TaintToleration"' in page
    assert "untolerated taint(s)" in page
    assert "1.2 ms" in page
    told = json.loads(get(viewing, "/api/v1/plugins"))
    assert {row["plugin"] for row in told["plugins"]} >= {"NodeAffinity", "Bind", HOSTILE}


def test_the_page_of_a_plugin_and_the_question_say_and_count_the_same(viewing: Viewing) -> None:
    said = "1.2 ms at filter, 1 call: too few to say since when it is slow"
    assert said in get(viewing, "/plugins/NodeAffinity")
    assert "too few to say" in get(viewing, "/plugins?q=NodeAffinity")
    told = json.loads(get(viewing, "/api/v1/why?plugin=NodeAffinity"))
    assert said in "".join(piece["text"] for piece in told["lines"][0])
    assert told["plugin"]["points"] == json.loads(get(viewing, "/api/v1/plugins/NodeAffinity"))["row"]["points"]
    listed = json.loads(get(viewing, "/api/v1/plugins"))["plugins"]
    assert json.loads(get(viewing, "/api/v1/why?plugin="))["plugins"] == listed


def test_a_plugin_has_its_minutes_its_reasons_and_its_slowest_attempts(viewing: Viewing) -> None:
    page = get(viewing, "/plugins/NodeAffinity")
    for words in (
        "minute-bars",
        "no match",
        "Its slowest attempts",
        "/pods/1f3c0a52",
        f"/traces/{no_room().trace_id.hex()}",
    ):
        assert words in page
    assert 'href="/?state=all&amp;plugin=NodeAffinity"' in page
    told = json.loads(get(viewing, "/api/v1/plugins/NodeAffinity"))
    assert told["row"]["points"][0]["minutes"][0]["calls"] == 1
    assert "denied: not today" in get(viewing, "/plugins/Bind")


@pytest.mark.parametrize("kind", ["nodes", "plugins"])
def test_names_that_are_markup_or_paths_are_shown_and_lead_to_their_page(viewing: Viewing, kind: str) -> None:
    page = get(viewing, f"/{kind}")
    assert "&lt;b&gt;" in page
    assert "<b>&#34;" not in page
    address = "%3Cb%3E%22%2F..%252f"
    assert f'href="/{kind}/{address}"' in page
    assert "&lt;b&gt;" in get(viewing, f"/{kind}/{address}")


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nodes/nowhere", 404, "Nothing is known of node nowhere"),
        ("/api/v1/plugins/nobody", 404, "nothing is known of this plugin"),
        ("/nodes?q=nothing", 200, "No node matches"),
        (f"/plugins?q={'x' * 257}", 400, "at most 256 characters"),
        ("/api/v1/nodes?after=-1", 400, "after is the number of rows"),
        ("/plugins?sort=size", 400, "sort is one of waiting, plugin, refusals, calls, median, slowest, total."),
    ],
)
def test_what_is_not_there_or_not_asked_well_is_told(viewing: Viewing, path: str, status: int, words: str) -> None:
    assert words in get(viewing, path, status=status)


def call_of(plugin: str, start: int, took: int) -> Group:
    trace = f"{plugin:<8.8}".encode() + start.to_bytes(8, "big")
    span = encode_span(
        trace_id=trace,
        span_id=trace[-8:],
        name=f"plugin: {plugin}",
        start=start,
        end=start + took,
        attributes={"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": "preBind"},
    )
    return Group(resource_header({"service.name": "kube-scheduler"}), scope_header("t"), trace, frame([span]), 1)


def slow_calls() -> list[Batch]:
    """Three plugins: one takes 4 s in each of its calls."""
    took = {"Fit": 20_000, "VolumeAttacher": 4 * S, "Image": 900_000}
    return [
        Batch([call_of(plugin, START + at * S, length)], START) for at in range(11) for plugin, length in took.items()
    ]


def test_plugins_are_sorted_as_asked_and_the_one_that_is_always_slow_says_so(viewing: Viewing) -> None:
    async def main(path: str) -> str:
        async with viewing(*slow_calls()) as (_, browser), browser.get(path) as answer:
            assert answer.status == 200
            return await answer.text()

    names = {
        sort: [row["plugin"] for row in json.loads(asyncio.run(main(f"/api/v1/plugins?sort={sort}")))["plugins"]]
        for sort in ("slowest", "median", "plugin")
    }
    assert names["slowest"] == names["median"] == ["VolumeAttacher", "Image", "Fit"]
    assert names["plugin"] == ["Fit", "Image", "VolumeAttacher"]
    page = asyncio.run(main("/plugins?q=a&sort=slowest"))
    assert "≥ 4 s" not in page
    assert "≥ 1 s: all 11 calls, first 14:13:20, last 14:13:30 UTC" in page
    assert 'aria-sort="descending"><a href="/plugins?q=a&amp;sort=slowest">Slowest</a>' in page
    assert '<a href="/plugins?q=a&amp;sort=plugin">Plugin</a>' in page
    assert '<input type="hidden" name="sort" value="slowest">' in page
    lead = asyncio.run(main("/plugins/VolumeAttacher"))
    assert "Slow (≥ 1 s) at preBind in all 11 calls held, first 14:13:20, last 14:13:30 UTC; median 4 s</bdi>." in lead
