"""Pages of a Pod that a node ran, of its attempt and of its life as one trace, from what a pipeline kept of them."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.otlp import Batch
from podtrail.recording import Record, read_recording
from tests.extensions.asking import Viewing, pages

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "node" / "podtrail"
CRASH = "487d8cd3-20e1-48a3-b084-c998c524f150"
LIFE = CRASH.replace("-", "")
STITCHED = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors:
  tail_sampling: {decision_wait: 5s, policies: [{name: pods, type: about_pod, about_pod: {}}]}
  link_stitching: {mode: MODE}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}
"""


Kept = Callable[[str], list[Batch]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """What a mode keeps of the recorded Pods, with what a watch told of them."""
    to = tmp_path_factory.mktemp("lives")

    def invoke(*command: str | Path) -> None:
        done = CliRunner().invoke(main, [str(part) for part in command])
        assert done.exit_code == 0, done.output

    invoke("reconstruct", "--pods", RECORDING / "pods.jsonl.zst", "--transitions", to / "watch.otlp")
    invoke("recording", "merge", RECORDING / "spans.otlp.zst", to / "watch.otlp", "--to", to / "all.otlp")

    @cache
    def by(mode: str) -> list[Batch]:
        config, out = to / f"{mode}.yaml", to / f"{mode}.otlp"
        config.write_text(STITCHED.replace("MODE", mode))
        invoke("replay", to / "all.otlp", "--config", config, "--output", out)
        return [Batch(one.intake.groups, one.arrival) for one in read_recording(out) if isinstance(one, Record)]

    return by


@pytest.fixture
def lives(kept: Kept) -> list[Batch]:
    return kept("lifecycle")


def shown(page: str, part: str) -> list[str]:
    """The lines of the links behind a heading, as they stand before anybody opens one."""
    listed = page[page.index(f'id="{part}"') :]
    listed = listed[listed.index('<ul class="links">') :]
    listed = re.sub(r"</summary>.*?</details>", "", listed, flags=re.DOTALL)
    lines = re.findall(r"<li[^>]*>(.*?)</li>", listed[: listed.index("</ul>")], flags=re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in lines]


def test_what_is_many_of_a_pods_links_stands_in_a_line_each_and_can_be_opened(
    viewing: Viewing, lives: list[Batch]
) -> None:
    [page] = pages(viewing, lives, f"/pods/{CRASH}")
    listed = shown(page, "trace")
    assert len(listed) < 20
    assert [line.split()[1] for line in listed[-4:]] == ["request", "event", "runtime", "original"]
    assert re.fullmatch(r"from request \d\d spans open the first", listed[-4])
    told = [line.split()[1] for line in listed]
    assert {"creation", "binding", "scheduling", "termination", "deletion"} <= set(told)
    assert told.count("scheduling") == 4
    assert re.search(r"from scheduling \d more spans open the first", "\n".join(listed))
    [fold] = re.findall(r"<details><summary>[^/]*</span> <b><bdi>event</bdi></b>.*?</details>", page, flags=re.DOTALL)
    assert fold.count("<li>") == int(re.search(r"event (\d+) spans", "\n".join(listed))[1])  # type: ignore[index]


def test_the_page_of_a_pod_leads_to_the_trace_of_its_life_and_that_leads_back(
    viewing: Viewing, lives: list[Batch]
) -> None:
    pod, told, life, api = pages(
        viewing, lives, f"/pods/{CRASH}", f"/api/v1/why?pod={CRASH}", f"/traces/{LIFE}", f"/api/v1/pods/{CRASH}"
    )
    assert f'<dt>life</dt><dd><a href="/traces/{LIFE}">as one trace</a>' in pod
    assert f"Its life as one trace: {LIFE}" in "\n".join(words(json.loads(told)["details"]))
    assert json.loads(api)["lifeTraceId"] == LIFE
    assert re.search(f'<a href="/pods/{CRASH}" id="up">.*</a> / its life</nav>', life)
    assert shown(life, "links") == ["to original 20 spans open the first"]


def words(lines: list[Any]) -> list[str]:
    return ["".join(piece["text"] for piece in line) for line in lines]


def test_a_span_of_a_life_leads_to_what_it_stands_for(viewing: Viewing, lives: list[Batch]) -> None:
    [api] = pages(viewing, lives, f"/api/v1/traces/{LIFE}")
    sandbox = next(row["spanId"] for row in json.loads(api)["trace"]["rows"] if row["name"] == "sandbox")
    [page] = pages(viewing, lives, f"/traces/{LIFE}?span={sandbox}")
    assert shown(page, "span") == ["to original runtime.v1.RuntimeService/RunPodSandbox open"]


def test_a_pod_without_the_trace_of_its_life_has_no_way_there(viewing: Viewing, lives: list[Batch]) -> None:
    rest = [Batch([group for group in batch.groups if group.trace_id.hex() != LIFE], batch.arrived) for batch in lives]
    [page] = pages(viewing, rest, f"/pods/{CRASH}")
    assert "as one trace" not in page


def test_the_page_tells_the_same_life_when_all_is_merged_into_one_trace(
    viewing: Viewing, lives: list[Batch], kept: Kept
) -> None:
    [told] = pages(viewing, lives, f"/api/v1/why?pod={CRASH}")
    [merged, page] = pages(viewing, kept("merge"), f"/api/v1/why?pod={CRASH}", f"/pods/{CRASH}")
    assert moments(merged) == moments(told)
    assert f'<a href="/traces/{LIFE}">as one trace</a>' in page


def moments(answer: str) -> list[str]:
    return [moment["what"] for moment in json.loads(answer)["lifetime"]]


def made_again(some: list[Batch]) -> list[Batch]:
    """Return them with the Pod `waits` under the name of `crash`, which was there before it."""
    return [
        Batch([group._replace(spans=group.spans.replace(b"waits", b"crash")) for group in batch.groups], batch.arrived)
        for batch in some
    ]


@pytest.mark.parametrize("mode", ["link", "lifecycle", "merge"])
def test_of_pods_of_one_name_each_is_told_with_its_own_creation_and_deletion_and_the_name_means_the_latest(
    viewing: Viewing, kept: Kept, mode: str
) -> None:
    some = made_again(kept(mode))
    named, first = pages(viewing, some, "/api/v1/why?pod=default/crash", f"/api/v1/why?pod={CRASH}")
    again = json.loads(named)["pod"]["uid"]
    assert again == "cea8dd0d-5c15-4750-93ca-9d332a86cde0"
    assert f"Earlier Pods of this name: {CRASH}" in "\n".join(words(json.loads(named)["details"]))
    for answer in (named, first):
        for what in ("created by admin (its user agent)", "deletion asked for by admin (its user agent)"):
            assert moments(answer).count(what) == 1
    created = [json.loads(answer)["lifetime"][0] for answer in (first, named)]
    assert [one["atUnixNano"][:12] for one in created] == ["179536761395", "179536763095"]


def test_of_pods_of_one_name_without_links_nobody_is_said_to_have_made_them(viewing: Viewing) -> None:
    raw = [
        Batch(one.intake.groups, one.arrival)
        for one in read_recording(RECORDING / "spans.otlp.zst")
        if isinstance(one, Record)
    ]
    [told] = pages(viewing, made_again(raw), "/api/v1/why?pod=default/crash")
    assert not [what for what in moments(told) if " by admin" in what]


def test_lives_that_two_pipelines_tell_of_one_pod_are_one(viewing: Viewing, lives: list[Batch]) -> None:
    [once] = pages(viewing, lives, f"/api/v1/why?pod={CRASH}")
    twice, page = pages(viewing, [*lives, *lives], f"/api/v1/why?pod={CRASH}", f"/traces/{LIFE}")
    assert moments(twice) == moments(once)
    assert "<dt>spans</dt><dd>21</dd>" in page
