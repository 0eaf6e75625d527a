"""What of docker/monitoring/ and the runbooks can be seen without a Prometheus."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prometheus.conftest import MONITORING
from tools.docs.instruments import described

ROOT = MONITORING.parents[1]
DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem, name="dashboard")
def _dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(json.loads(request.param.read_text("utf-8")))


def test_there_are_two_dashboards_each_with_an_address_of_its_own() -> None:
    uids = [json.loads(path.read_text("utf-8"))["uid"] for path in DASHBOARDS]
    assert uids == ["podtrail-scheduling", "podtrail"]


def test_panels_have_ids_of_their_own_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in dashboard["panels"]):
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells
        taken |= cells


def test_panels_ask_the_data_source_that_is_chosen(dashboard: dict[str, Any]) -> None:
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert variables["datasource"]["query"] == "prometheus"
    for panel in dashboard["panels"]:
        assert panel["type"] in ("timeseries", "stat", "heatmap")
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        used = set(re.findall(r"\$(\w+)", " ".join(target["expr"] for target in panel["targets"])))
        assert used <= variables.keys() | {"__rate_interval"}


def test_what_is_said_in_a_runbook_to_look_for_is_there() -> None:
    names = {metric.name.replace(".", "_") for metric in described(ROOT)}
    asked = [word for page in RUNBOOKS for word in re.findall(r"/metrics \| grep (\S+)", page.read_text("utf-8"))]
    assert len(asked) > 10
    for word in asked:
        assert any(name.startswith(word.rstrip("_")) for name in names), word


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda path: path.stem)
def test_what_a_runbook_links_is_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_kustomization_has_all_that_is_there() -> None:
    kustomization = yaml.safe_load((MONITORING / "kustomization.yaml").read_text("utf-8"))
    assert {"kustomization.yaml", *kustomization["resources"]} == {path.name for path in MONITORING.glob("*.yaml")}
    runbooks, dashboards = kustomization["configMapGenerator"]
    assert runbooks["name"] == "podtrail-runbooks"
    assert dashboards["files"] == [f"dashboards/{path.name}" for path in DASHBOARDS]


def test_the_service_monitor_selects_the_services_and_names_their_port() -> None:
    documents = list(yaml.safe_load_all((MONITORING / "servicemonitor.yaml").read_text("utf-8")))
    services = [one for one in documents if one["kind"] == "Service"]
    (monitor,) = [one["spec"] for one in documents if one["kind"] == "ServiceMonitor"]
    for service in services:
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert service["metadata"]["namespace"] in monitor["namespaceSelector"]["matchNames"]
        assert service["metadata"]["labels"][monitor["jobLabel"]] == "podtrail"
        assert [port["name"] for port in service["spec"]["ports"]] == [one["port"] for one in monitor["endpoints"]]


def test_ci_builds_what_the_tests_start() -> None:
    assert "tests/prometheus/build.sh" in (ROOT / ".ci" / "run").read_text("utf-8")
    built = re.findall(
        r"^build (\S+)$", (MONITORING.parents[1] / "tests/prometheus/build.sh").read_text("utf-8"), re.MULTILINE
    )
    assert built == ["promtool", "prometheus"]
