"""The page about policies, the one about a decision, and the API behind both and behind `podtrail why`."""

import json
import re
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from podtrail_extensions.viewer import decision_views
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics

from podtrail.component import Metrics
from podtrail.otlp import Batch, Decision, Link, PolicyVote, Verdict
from podtrail.story import PolicyCost
from podtrail.story.decisions import DecisionEntry, select
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing, get

SECOND = 1_000_000_000
FIRST, SECOND_TRY = no_room(), MadeAttempt(number=2, start=START + SECOND, uid="other", name="api-1")


class Says:
    """Explains every vote with the same words."""

    shadow = None

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        return [PolicyVote(policy, "latency", vote, "SchedulePod took 9 ms") for policy, vote in verdict.votes.items()]


def decided(attempt: MadeAttempt, decision: Decision, policy: str = "") -> Batch:
    reason = "" if policy else "no policy said yes"
    batch = attempt.batch(decision, policy, reason)
    batch.verdicts[0].votes = {"failed": "sampled" if policy else "not_sampled", "slow": "not_sampled"}
    batch.verdicts[0].explainer = Says()
    return batch


def both() -> list[Batch]:
    return [decided(FIRST, "sampled", "failed"), decided(SECOND_TRY, "not_sampled")]


def test_the_page_shows_what_each_policy_did_and_the_decisions_below(viewing: Viewing) -> None:
    page = get(viewing, "/policies", *both())
    assert "2 traces decided in the last hour: 1 kept (50 %)" in page
    assert re.search(
        r">failed</bdi></a></th>\s*<td>latency</td>\s*<td class=\"num\" data-label=\"Voted yes\">1</td>", page
    )
    assert f'href="/decisions/{FIRST.trace_id.hex()}"' in page
    assert f'href="/pods/{FIRST.uid}"' in page
    assert page.index("api-1") < page.index("web-0"), "the latest decision is not first"


def test_what_no_policy_kept_and_was_kept_has_a_row_so_that_they_add_up(viewing: Viewing) -> None:
    assert "(another reason)" not in get(viewing, "/policies", *both())
    linked = decided(SECOND_TRY, "sampled", "linked_traces")
    linked.verdicts[0].votes = {"failed": "not_sampled", "slow": "not_sampled"}
    page = get(viewing, "/policies", both()[0], linked)
    row = re.search(r"\(another reason\).*?</tr>", page, re.DOTALL)
    assert row
    spans = linked.verdicts[0].spans
    assert re.findall(r'<td class="num"[^>]*>([^<]*)</td>', row[0]) == ["-", "1", "-", str(spans), "-", "-"]


def test_a_decision_says_each_vote_with_its_reason_and_links_to_pod_and_trace(viewing: Viewing) -> None:
    page = get(viewing, f"/decisions/{FIRST.trace_id.hex()}", *both())
    for words in ("failed", "slow", "SchedulePod took 9 ms", f"/traces/{FIRST.trace_id.hex()}", f"/pods/{FIRST.uid}"):
        assert words in page
    assert f"podtrail why trace {FIRST.trace_id.hex()}" in page


async def test_the_digits_that_pages_show_lead_to_a_trace_kept_or_not(viewing: Viewing) -> None:
    kept, dropped = (one.trace_id.hex() for one in (FIRST, SECOND_TRY))

    async with viewing(*both()) as (_, browser):
        for digits, place in ((dropped[:8], f"/decisions/{dropped}"), (kept[:9], f"/traces/{kept}")):
            async with browser.get(f"/?q={digits}", allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, place)
            async with browser.get(f"/api/v1/why?trace={digits.upper()}") as answer:
                assert place.rpartition("/")[2] in await answer.text()
        for digits in (dropped, dropped[:8]):
            async with browser.get(f"/traces?q={digits}") as answer:
                page = await answer.text()
            assert f'href="/decisions/{dropped}"' in page
            assert "not kept" in page
            assert "No trace matches" not in page
        async with browser.get("/api/v1/why?trace=00000000") as answer:
            assert "nothing is known of a trace that begins with 00000000" in await answer.text()


def test_a_pod_leads_to_the_decisions_about_its_attempts_kept_or_not(viewing: Viewing) -> None:
    page = get(viewing, "/pods/other", *both())
    assert f'href="/decisions/{SECOND_TRY.trace_id.hex()}"' in page
    assert "podtrail why pod default/api-1" in page
    assert 'href="/policies?q=other#decisions"' in page


def test_a_decision_about_a_trace_that_was_not_kept_has_its_links(viewing: Viewing) -> None:
    links = [Link(FIRST.trace_id, FIRST.root_id, {"podtrail.link.type": "previous-attempt"})]
    other = MadeAttempt(uid="third", number=3, links=links)
    page = get(viewing, f"/decisions/{other.trace_id.hex()}", *both(), decided(other, "not_sampled"))
    assert "previous-attempt" in page
    assert "attempt 1 of default/web-0" in page


def test_linked_traces_that_were_not_kept_lead_to_each_other_s_decision(viewing: Viewing) -> None:
    links = [Link(SECOND_TRY.trace_id, SECOND_TRY.root_id, {"podtrail.link.type": "previous-attempt"})]
    other = MadeAttempt(uid="third", number=3, links=links)
    batches = [decided(one, "not_sampled") for one in (SECOND_TRY, other)]
    for asked, linked in ((SECOND_TRY, other), (other, SECOND_TRY)):
        page = get(viewing, f"/decisions/{asked.trace_id.hex()}", *batches)
        assert f'href="/decisions/{linked.trace_id.hex()}"' in page
        assert "none to here is known" not in page


def test_a_trace_that_was_kept_leads_to_one_that_links_to_it_and_was_not(viewing: Viewing) -> None:
    links = [Link(FIRST.trace_id, FIRST.root_id, {"podtrail.link.type": "previous-attempt"})]
    other = MadeAttempt(uid="third", number=3, links=links)
    page = get(viewing, f"/traces/{FIRST.trace_id.hex()}", *both(), decided(other, "not_sampled"))
    assert f'href="/decisions/{other.trace_id.hex()}"' in page


async def test_the_first_digits_of_an_id_in_an_address_lead_to_the_trace_or_the_list_of_several(
    viewing: Viewing,
) -> None:
    kept, dropped = (one.trace_id.hex() for one in (FIRST, SECOND_TRY))
    alike = [MadeAttempt(uid=f"u{n}", name=f"w{n}").batch() for n in range(2)]
    ids = [bytes.fromhex("abcdef12") + bytes([n]) * 12 for n in range(2)]
    for batch, trace_id in zip(alike, ids, strict=True):
        batch.verdicts[0].trace_id = trace_id

    async with viewing(*both(), *alike) as (_, browser):
        for path, place in (
            (f"/decisions/{dropped[:8]}", f"/decisions/{dropped}"),
            (f"/decisions/{kept[:31].upper()}", f"/decisions/{kept}"),
            (f"/traces/{dropped[:8]}", f"/decisions/{dropped}"),
            (f"/traces/{kept[:9]}", f"/traces/{kept}"),
            ("/decisions/abcdef12", "/traces?q=abcdef12"),
            ("/traces/ABCDEF12", "/traces?q=abcdef12"),
        ):
            async with browser.get(path, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, place)
        for path in ("/decisions/00000000", "/traces/00000000"):
            async with browser.get(path) as answer:
                assert answer.status == 404
                assert "No trace that is held begins with 00000000." in await answer.text()
        async with browser.get(f"/decisions/{dropped[:7]}") as answer:
            assert answer.status == 400


@pytest.mark.parametrize(
    ("path", "batches", "status", "words"),
    [
        ("/policies", [], 200, "everything is kept"),
        ("/policies?q=nothing", both(), 200, "No decision matches"),
        ("/policies?decision=perhaps", both(), 400, "decision is one of"),
        ("/policies?before=x", both(), 400, "before is a number"),
        ("/policies?q=" + "x" * 300, both(), 400, "at most 256"),
        ("/decisions/xyz", both(), 400, "32 hexadecimal digits"),
        ("/decisions/" + "0" * 32, both(), 404, "Decisions are held since"),
        ("/decisions/" + "0" * 32, [], 404, "No decision was made yet"),
        ("/api/v1/decisions?limit=0", both(), 400, "limit is a number"),
        ("/api/v1/decisions?limit=5000", both(), 400, "limit is a number"),
        ("/api/v1/decisions/" + "0" * 32, both(), 404, "no decision about this trace is held"),
        ("/api/v1/why", both(), 400, "Ask for one of"),
        ("/api/v1/why?pod=default/nope", both(), 404, "nothing is known of Pod default/nope"),
        ("/api/v1/why?trace=" + "0" * 32, both(), 404, "nothing is known of trace"),
        ("/api/v1/why?trace=xyz", both(), 400, "32 hexadecimal digits"),
    ],
)
def test_what_is_not_there_is_said_in_words(
    viewing: Viewing, path: str, batches: list[Batch], status: int, words: str
) -> None:
    assert words in get(viewing, path, *batches, status=status)


async def test_the_lists_of_the_api_have_pages_and_filters(viewing: Viewing) -> None:
    async with viewing(*both()) as (_, browser):

        async def ask(query: str) -> tuple[list[str], int | None]:
            async with browser.get("/api/v1/decisions" + query) as answer:
                told = await answer.json()
            return [one["name"] for one in told["decisions"]], told["more"]

        assert await ask("?limit=1") == (["api-1"], 2)
        assert await ask("?limit=1&before=2") == (["web-0"], None)
        assert await ask("?policy=failed") == (["web-0"], None)
        for words, name in (("not_sampled dropped not-kept", "api-1"), ("sampled KEPT", "web-0")):
            for word in words.split():
                assert await ask(f"?decision={word}") == ([name], None)
        assert await ask("?q=web") == (["web-0"], None)
        assert await ask(f"?q={SECOND_TRY.trace_id.hex()}") == (["api-1"], None)


def test_the_api_tells_votes_and_table_as_the_pages_do(viewing: Viewing) -> None:
    told = json.loads(get(viewing, f"/api/v1/decisions/{FIRST.trace_id.hex()}", *both()))
    assert [(vote["policy"], vote["why"]) for vote in told["votes"]] == [
        ("failed", "SchedulePod took 9 ms"),
        ("slow", "SchedulePod took 9 ms"),
    ]
    assert (told["decision"]["decision"], told["pod"]["name"], told["explained"]) == ("sampled", "web-0", True)
    (sampler,) = json.loads(get(viewing, "/api/v1/policies", *both()))["samplers"]
    assert [(row["policy"], row["votedYes"], row["onlyIt"]) for row in sampler["policies"]] == [
        ("failed", 1, 1),
        ("slow", 0, 0),
    ]


async def test_page_and_api_say_the_same_words_about_a_pod(viewing: Viewing) -> None:
    async with viewing(*both()) as (_, browser):
        async with browser.get("/api/v1/why", params={"pod": "default/web-0"}) as answer:
            told = await answer.json()
        async with browser.get(f"/pods/{FIRST.uid}") as answer:
            page = re.sub("<[^>]*>", "", await answer.text()).replace("&#39;", "'")
    assert told["pod"]["uid"] == FIRST.uid
    assert int(told["heldSinceUnixNano"]) > START
    for line in told["lines"]:
        assert "".join(piece["text"] for piece in line) in page


async def test_decisions_are_held_within_their_own_bound(viewing: Viewing) -> None:
    async with viewing(max_decisions_mib=1) as (viewer, browser):
        for n in range(2_000):
            viewer.observe("traces", decided(MadeAttempt(uid=f"uid-{n}", name=f"web-{n}"), "not_sampled"))
        assert viewer.library.decisions.size <= 1 << 20
        assert 100 < len(viewer.library.decisions) < 2_000
        async with browser.get("/policies") as answer:
            page = await answer.text()
    assert "older ones are no longer held" in page
    assert page.count('<tr>\n<td><a class="row"') == 100


def test_costs_errors_and_the_undecided_come_from_the_samplers_metrics() -> None:
    metrics = Metrics()
    prefix = "otelcol_processor_tail_sampling_"
    assert SamplerMetrics(metrics).undecided() is None
    metrics.gauge(prefix + "sampling_traces_on_memory", "").read_from(lambda: 7)
    votes = metrics.counter(prefix + "count_traces_sampled", "", ("policy", "sampled", "decision"))
    votes.add(6, "a,sampled=b", "true", "sampled")
    votes.add(2, "a,sampled=b", "false", "not_sampled")
    metrics.counter(prefix + "sampling_policy_execution_count", "", ("policy",)).add(10, "a,sampled=b")
    metrics.counter(prefix + "sampling_policy_execution_time_sum", "", ("policy",)).add(25, "a,sampled=b")
    assert SamplerMetrics(metrics).undecided() == 7
    assert SamplerMetrics(metrics).costs() == {"a,sampled=b": PolicyCost(2.5, 2)}


async def test_a_policy_that_fails_never_says_yes_or_is_covered_by_another_is_worth_a_warning(viewing: Viewing) -> None:
    async with viewing() as (viewer, browser):
        for n in range(100):
            batch = decided(MadeAttempt(number=n + 1), "sampled", "failed")
            slow: Decision = "sampled" if n else "not_sampled"
            batch.verdicts[0].votes = {"failed": "sampled", "slow": slow, "idle": "not_sampled"}
            viewer.observe("traces", batch)
        evicted = MadeAttempt(uid="e").verdict("not_sampled", "", "evicted before its decision: num_traces")
        viewer.observe("traces", Batch((), START, [evicted]))
        async with browser.get("/policies") as answer:
            page = await answer.text()
    assert "&#39;idle&#39; said yes to none of 100 traces" in page
    assert "&#39;slow&#39; said yes only where &#39;failed&#39; did: without it nothing is lost" in page
    assert "1 trace evicted before the decision" in page


@pytest.mark.parametrize("path", ["/policies?q=web-0", "/api/v1/decisions?policy=failed"])
async def test_many_decisions_are_looked_through_in_a_thread(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    lookers: list[int] = []

    def note(*asked: Any) -> tuple[list[DecisionEntry], int]:
        lookers.append(threading.get_ident())
        return select(*asked)

    monkeypatch.setattr(decision_views, "select", note)
    monkeypatch.setattr(decision_views, "_MANY", 2)

    batches = [no_room(uid=f"u{number}").batch("sampled", "failed") for number in range(3)]
    async with viewing(*batches) as (_, browser), browser.get(path) as answer:
        assert answer.status == 200
        assert "web-0" in await answer.text()
    assert len(lookers) == 1
    assert threading.get_ident() not in lookers
