"""The page of a gateway of several clusters: each Pod says of which it is; of one alone there is no word."""

import re

import pytest

from podtrail.otlp import Batch
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room
from tests.extensions.asking import Viewing, pages
from tests.extensions.browser import Browse

EAST = "production-east"
ARN = "arn:aws:eks:eu-west-1:123456789012:cluster/production-west"
SHORT = "arn:aws:eks:eu-west…ster/production-west"


def batches(*clusters: str) -> list[Batch]:
    """The same two Pods in each cluster."""
    found = []
    for at, cluster in enumerate(clusters):
        start = START + at * MS
        runs = MadeAttempt(uid=f"{at}-runs", name="web-1", cluster=cluster, start=start)
        api = no_room(uid=f"{at}-api", name="api-0", namespace="shop", cluster=cluster, start=start)
        found.append(no_room(uid=f"{at}-waits", cluster=cluster, start=start).batch())
        found += [runs.batch(), api.batch("not_sampled", "", "no yes")]
    return found


ALL = ("/?state=all", "/pods/0-waits", "/policies", "/traces/{trace}", "/decisions/{trace}", "/?state=all&q=api")


def addresses() -> list[str]:
    trace = no_room(uid="0-waits").trace_id.hex()
    return [path.format(trace=trace) for path in ALL]


@pytest.mark.parametrize("cluster", ["", EAST])
def test_of_one_cluster_alone_no_page_speaks(viewing: Viewing, cluster: str) -> None:
    for path, page in zip(ALL, pages(viewing, batches(cluster), *addresses()), strict=True):
        # The resource of a span says all that it says.
        said = re.sub(r"(?s)<h3>Resource</h3>.*?</dl>", "", page)
        assert "Cluster" not in said, path
        assert "cluster " not in said.replace("in the cluster", ""), path
        assert EAST not in said, path


def test_of_several_each_pod_says_its_own_wherever_it_is_named(viewing: Viewing) -> None:
    listed, pod, policies, trace, decision, _ = pages(viewing, batches(EAST, ARN), *addresses())
    for cluster, shown in ((EAST, EAST), (ARN, SHORT)):
        assert listed.count(f'data-label="Cluster" title="{cluster}"><bdi>{shown}</bdi>') == 3
    assert f"<title>default/web-0 in {EAST}" in pod
    assert f"podtrail why pod --cluster {EAST} default/web-0" in pod
    assert f'<a href="/pods/1-waits"><bdi title="{ARN}">{SHORT}</bdi></a>' in pod
    assert f"<dt>cluster</dt><dd><bdi>{EAST}</bdi></dd>" in pod
    assert "Created anew" not in pod
    for page in (policies, trace, decision):
        assert f'in cluster <bdi title="{EAST}">{EAST}</bdi>' in page
    assert f'in cluster <bdi title="{ARN}">{SHORT}</bdi>' in policies


def test_pods_are_searched_for_filtered_and_sorted_by_their_cluster(viewing: Viewing) -> None:
    found, chosen, ordered, other = pages(
        viewing,
        batches(EAST, ARN),
        "/?state=all&q=PRODUCTION-east",
        f"/?state=all&cluster={ARN}",
        "/?state=all&sort=cluster",
        "/?state=all&cluster=south",
    )
    assert set(re.findall(r'href="/pods/([^"]+)"', found)) == {"0-waits", "0-runs", "0-api"}
    assert set(re.findall(r'href="/pods/([^"]+)"', chosen)) == {"1-waits", "1-runs", "1-api"}
    assert f'<option value="{ARN}" selected>' in chosen
    assert [key[0] for key in re.findall(r'href="/pods/([^"]+)"', ordered)] == ["1"] * 3 + ["0"] * 3
    assert "No Pod matches" in other


async def test_the_api_tells_clusters_and_asks_back(viewing: Viewing) -> None:
    async with viewing(*batches(EAST, ARN)) as (_, browser):
        async with browser.get("/api/v1/pods?state=all") as answer:
            told = await answer.json()
        assert told["clusters"] == [ARN, EAST]
        assert {pod["cluster"] for pod in told["pods"]} == {ARN, EAST}
        async with browser.get("/api/v1/why?pod=default/web-0") as answer:
            assert answer.status == 404
            assert [choice["key"] for choice in (await answer.json())["choices"]] == ["1-waits", "0-waits"]
        async with browser.get("/api/v1/why", params={"pod": "default/web-0", "cluster": ARN}) as answer:
            assert (await answer.json())["pod"]["uid"] == "1-waits"
        async with browser.get("/", params={"cluster": "x" * 257}) as answer:
            assert answer.status == 400


def test_a_pod_without_a_uid_has_an_address_with_its_cluster(viewing: Viewing) -> None:
    given = [no_room(uid="", cluster=cluster, number=n).batch() for n, cluster in enumerate((EAST, ARN), 1)]
    (listed,) = pages(viewing, given, "/")
    links = re.findall(r'href="(/pods/[^"]+)"', listed)
    assert len(links) == 2
    for page in pages(viewing, given, *links):
        assert "default/web-0 in " in page


@pytest.mark.slow
async def test_long_names_of_clusters_scroll_nothing_sideways(viewing: Viewing, browse: Browse) -> None:
    async with viewing(*batches(EAST, ARN, "x" * 200)) as (viewer, _), browse() as browser:
        pages = [viewer.page.rstrip("/") + path for path in (*addresses(), "/pods/2-waits")]
        assert [what for page in pages for what in await browser.sideways_at(page, 380, 768, 1280)] == []
