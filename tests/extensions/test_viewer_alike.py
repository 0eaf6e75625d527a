import re
from html import unescape

from podtrail_extensions.viewer.alike import alike_query

from podtrail.story import Stories, read_pod_search
from podtrail.story.pending_question import pods_alike
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing, pages

DENIED = 'running Bind plugin "DefaultBinder": pods "frozen-{}" is forbidden: "not" today\\, ' + "or ever " * 60
REFUSED = [
    MadeAttempt(uid=f"frozen-{n}", name=f"frozen-{n}", result="Error", bind_error=DENIED.format(n)) for n in range(4)
]
ALONE = no_room()
BATCHES = [*(one.batch() for one in REFUSED), ALONE.batch()]
SAME = [no_room(uid=f"same-{n}", name=f"same-{n}", start=START + n) for n in range(2)]


def test_pods_that_wait_for_the_same_reason_are_one_line_that_leads_to_them(viewing: Viewing) -> None:
    (page,) = pages(viewing, BATCHES, "/")
    found = re.search(r'<a class="row" href="(/\?q=[^"]+)"><b>4 Pods</b></a>: <bdi>DefaultBinder: ', page)
    assert found is not None
    assert "<b>1 Pod</b></a>: " not in page
    assert "5 Pods wait for 2 reasons" in page
    assert '<span class="dim">for <time' in page
    other = re.search(r'and 1 Pod for 1 other reason: <a href="(/\?q=[^"]+)">', page)
    assert other is not None
    (lonely,) = pages(viewing, BATCHES, unescape(other[1]))
    assert f"/pods/{ALONE.uid}" in lonely
    assert "/pods/frozen-0" not in lonely
    (alone,) = pages(viewing, BATCHES, unescape(found[1]))
    assert all(f"/pods/frozen-{n}" in alone for n in range(4))
    assert ALONE.uid not in alone
    assert 'id="alike"' not in alone


def test_the_reason_stands_beside_the_name_of_the_plugin(viewing: Viewing) -> None:
    (page,) = pages(viewing, BATCHES, "/")
    assert "31 NodeAffinity, 2 NodeResourcesFit, 1 more</bdi>" in page
    assert '<span class="reason"><bdi>no match</bdi></span>' in page


def test_the_search_of_a_group_finds_its_pods_and_no_other() -> None:
    stories = Stories()
    for attempt in [*REFUSED, *SAME]:
        stories.observe(attempt.batch())
    groups = pods_alike(stories.pods())
    assert [group.pods for group in groups] == [4, 2]
    for group in groups:
        wanted = read_pod_search(alike_query(group), START)
        assert sum(wanted.finds(pod) for pod in stories.pods()) == group.pods


def test_reasons_that_differ_at_their_end_are_searches_of_their_own() -> None:
    stories = Stories()
    for end, count in (("until Monday", 3), ("not today", 2)):
        for n in range(count):
            name = f"{end[:3]}-{n}"
            denied = DENIED.format(n).replace("frozen", end[:3]) + end
            stories.observe(MadeAttempt(uid=name, name=name, result="Error", bind_error=denied).batch())
    groups = pods_alike(stories.pods())
    found = [read_pod_search(alike_query(group), START) for group in groups]
    assert [sum(map(one.finds, stories.pods())) for one in found] == [3, 2]
