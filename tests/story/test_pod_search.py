import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import Batch
from podtrail.story import POD_LANGUAGE, PodSuggestions, SearchError, Stories, quoted, read_pod_search
from podtrail.testing.attempts import START, MadeAttempt, no_room

DOCS = Path(__file__).parents[2] / "docs" / "finding.md"
S = 10**9
NOW = START + 3_600 * S


@pytest.fixture(scope="module")
def stories() -> Stories:
    told = Stories()
    for attempt in (
        *(no_room(number=n, start=START + n * S) for n in range(1, 13)),
        MadeAttempt(uid="bound", namespace="batch", name="train-1", start=NOW - 60 * S, duration=4 * S),
        MadeAttempt(
            uid="refused",
            name="frozen-0",
            start=NOW - 600 * S,
            result="Error",
            bind_error="pods is forbidden: not today",
        ),
    ):
        told.observe(attempt.batch())
    told.note_gated("gated", "quota", "held-0", ["example.com/image-scan"], NOW - 1_800 * S)
    return told


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", {"web-0", "train-1", "frozen-0", "held-0"}),
        ("ns:default", {"web-0", "frozen-0"}),
        ("-ns:default,quota", {"train-1"}),
        ("name:*-0 default", {"web-0", "frozen-0"}),
        ("node:node-07", {"train-1", "frozen-0"}),
        ("plugin:nodeaffinity", {"web-0"}),
        ("plugin:SchedulingGates", {"held-0"}),
        ('reason:"untolerated taint"', {"web-0"}),
        ("reason:NOT\x20today", set()),
        ('reason:"not today"', {"frozen-0"}),
        ("reason:image-scan", {"held-0"}),
        ("profile:default-*", {"web-0", "train-1", "frozen-0"}),
        ("state:gated,slow", {"held-0", "train-1"}),
        ("state:bind-refused", {"frozen-0"}),
        ('state:"to look at" -state:slow', {"web-0", "frozen-0", "held-0"}),
        ("attempts:>10", {"web-0"}),
        ("attempts:<=1", {"train-1", "frozen-0", "held-0"}),
        ("slower:1s", {"train-1"}),
        ("uid:1F3C", {"web-0"}),
        ("since:15m", {"train-1", "frozen-0"}),
        ("since:1h until:9m", {"web-0", "frozen-0", "held-0"}),
        ("since:20m until:11m", set()),
        ("-since:15m", {"web-0", "held-0"}),
    ],
)
def test_pods_are_found_by_what_is_known_of_them(stories: Stories, search: str, found: set[str]) -> None:
    wanted = read_pod_search(search, NOW)
    assert {pod.name for pod in stories.pods() if wanted.finds(pod)} == found


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("state:gatd", "There is no state gatd. Did you mean gated? states: "),
        ("attempts:many", "attempts:many is no number: attempts:>10, attempts:<3 or attempts:5 would be right."),
        ("slower:fast", "slower:fast is no length of time: "),
        ("slower:", "slower: wants a value right behind it."),
        ("since:5m until:10m", "until: is before since:, so that nothing can lie between them."),
        ("nodes:a", "There is no key nodes:. Did you mean node:? "),
    ],
)
def test_a_search_that_asks_for_nothing_possible_is_told(search: str, words: str) -> None:
    with pytest.raises(SearchError) as caught:
        read_pod_search(search, NOW)
    assert str(caught.value).startswith(words)


def problem_of(stories: Stories, search: str) -> str:
    """Search for Pods; return what is wrong with the search, "" for nothing."""
    try:
        wanted = read_pod_search(search, NOW)
    except SearchError as error:
        return str(error)
    assert all(wanted.finds(pod) in (True, False) for pod in stories.pods())
    return ""


@given(st.sampled_from(sorted(POD_LANGUAGE.names)), st.text(min_size=1))
def test_any_value_of_any_key_finds_or_is_told(stories: Stories, key: str, value: str) -> None:
    assert problem_of(stories, f"{key}:{quoted(value)}").isprintable()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", "ns:"),
        ("web pl", "web plugin:"),
        ("-ns:de", "-ns:default"),
        ("ns:default plugin:aff", "ns:default plugin:NodeAffinity"),
        ("reason:taint", 'reason:"untolerated taint(s)"'),
        ('reason:"untolerated ta', 'reason:"untolerated taint(s)"'),
        ("state:bind", 'state:"bind refused"'),
    ],
)
def test_a_search_is_completed_from_keys_and_what_pods_have(stories: Stories, typed: str, offered: str) -> None:
    assert offered in [one.text for one in PodSuggestions(stories).complete(typed)]


@settings(max_examples=200)
@given(st.text(alphabet='ab:"- \\né,', max_size=30))
def test_what_is_suggested_can_be_searched_for(stories: Stories, typed: str) -> None:
    for offered in PodSuggestions(stories).complete(f"{typed} state:g"):
        assert offered.text.startswith(f"{typed} ")


def test_what_is_offered_first_is_what_the_pods_held_have() -> None:
    told = Stories()
    told.observe(Batch([], 0, [no_room().verdict("not_sampled")]))
    offered = [one.text for one in PodSuggestions(told).options()]
    assert {"ns:default", "state:unschedulable", "plugin:NodeAffinity"} <= set(offered)


def test_every_search_of_the_documentation_is_understood_and_every_key_is_there() -> None:
    rows = [line.split("|")[1] for line in DOCS.read_text().splitlines() if line.startswith("| `") and ":" in line]
    shown = [term for row in rows for term in re.findall(r"`([a-z]+:[^`]+)`", row)]
    assert {term.partition(":")[0] for term in shown} == set(POD_LANGUAGE.names)
    for term in shown:
        read_pod_search(term, NOW)
