"""A workload from files, as kubectl writes them: what becomes of the Nodes and Pods in it, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_scheduler import Simulation, Workload
from podtrail_scheduler.workload.manifests import read_objects
from pydantic import ValidationError


def node(name: str, cpu: str = "4", **more: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, **more}


def pod(name: str, cpu: str = "1", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created},
        "spec": {"containers": containers, **spec},
    }


def listed(*items: dict[str, Any]) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(items)})


def workload(path: Path, text: str, *, length: str = "1m", **objects: Any) -> Workload:
    path.write_text(text, encoding="utf-8")
    return Workload.model_validate({"length": length, "objects": {"files": [str(path)], **objects}})


def placed(simulation: Simulation) -> dict[str, str]:
    return {each.name: each.node_name for each in simulation.api_server.pods.values()}


def run(workload: Workload) -> Simulation:
    simulation = Simulation(workload)
    for _ in simulation.run():
        pass
    return simulation


def test_pods_with_a_node_run_on_and_those_without_come_in_the_order_of_their_creation(tmp_path: Path) -> None:
    text = listed(
        node("a"),
        pod("late", "3", "2026-01-01T00:00:02Z"),
        pod("early", "3", "2026-01-01T00:00:01Z"),
        pod("there", nodeName="a"),
    )
    simulation = run(workload(tmp_path / "c.yaml", text))
    assert placed(simulation) == {"there": "a", "early": "a", "late": ""}
    [waiting] = simulation.summary().pending
    assert (waiting.key, simulation.summary().created) == ("shop/late", 2)


def test_what_has_ended_is_going_or_runs_elsewhere_takes_no_room(tmp_path: Path) -> None:
    ended = pod("ended", "4", nodeName="a") | {"status": {"phase": "Succeeded"}}
    going = pod("going", "4", nodeName="a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
    text = listed(node("a"), ended, going, pod("elsewhere", "4", nodeName="gone"), pod("new", "4"))
    assert placed(run(workload(tmp_path / "c.yaml", text))) == {"new": "a"}


def test_all_pods_can_be_scheduled_anew_but_those_that_a_kubelet_runs_by_itself(tmp_path: Path) -> None:
    mirror = pod("mirror", "2", nodeName="b")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    text = listed(node("a"), node("b"), mirror, pod("web", "4", nodeName="b"))
    assert placed(run(workload(tmp_path / "c.yaml", text, reschedule=True))) == {"mirror": "b", "web": "a"}


def test_manifests_may_stand_one_behind_the_other_in_json_or_in_a_list_of_their_kind(tmp_path: Path) -> None:
    raw = {"kind": "PodList", "apiVersion": "v1", "items": [{k: pod("raw")[k] for k in ("metadata", "spec")}]}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    text = "\n---\n".join(map(json.dumps, [node("a"), raw, config_map])) + "\n---\n"
    assert placed(run(workload(tmp_path / "c.json", text))) == {"raw": "a"}


def test_a_node_that_says_only_its_capacity_has_all_of_it(tmp_path: Path) -> None:
    text = listed(node("a", status={"capacity": {"cpu": "2", "memory": "1Gi", "pods": "9"}}), pod("web", "2"))
    assert placed(run(workload(tmp_path / "c.yaml", text))) == {"web": "a"}


def test_what_is_made_up_comes_in_addition_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(listed(node("a"), pod("web", terminationGracePeriodSeconds=1)), encoding="utf-8")
    given = {"length": "30s", "objects": {"files": [str(path)]}, "pods": [{"name": "more"}]}
    given |= {"faults": {"pods_deleted": [{"after": "20s"}]}}
    simulation = run(Workload.model_validate(given))
    assert simulation.summary().created > 5
    assert {name.rpartition("-")[0] for name in placed(simulation)} == {"more"}, (
        "web is deleted, its name has no number"
    )
    assert not Workload.model_validate({"objects": {"files": [str(path)]}}).nodes


def test_the_same_files_and_seed_give_the_same_pods(tmp_path: Path) -> None:
    text = listed(node("a"), node("b"), *(pod(f"web-{number}") for number in range(5)))
    first, second = (run(workload(tmp_path / "c.yaml", text)) for _ in range(2))
    assert placed(first) == placed(second)
    assert first.api_server.pods.keys() == second.api_server.pods.keys()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("items: [\n", "c.yaml:2:1: yaml: "),
        ("[1]", "c.yaml:1:1: an object is wanted, not an array"),
        ("apiVersion: v1\nkind: List\n", "c.yaml:1:1: items: a List needs a list of items"),
        ("apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n", "c.yaml:4:3: items[0].apiVersion: apiVersion is missing"),
        (
            "apiVersion: v1\nkind: nod\nmetadata: {name: a}\n",
            "c.yaml:2:7: kind 'nod' is not known (did you mean Node?)",
        ),
        ("apiVersion: v2\nkind: Pod\n", "c.yaml:1:13: apiVersion: Pod of 'v2' is not known (v1)"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "c.yaml:3:11: metadata.name: a Pod needs a name"),
        ("apiVersion: v1\nkind: Pod\nkind: Pod\n", "c.yaml:3:1: key 'kind' is already set"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{resources: {requests: {cpu: 1x}}}]}",
            "c.yaml:4:50: spec.containers[0].resources.requests.cpu: '1x' is not a quantity such as 2, 500m or 1Gi",
        ),
        ("[" * 100_000, "c.yaml: yaml: exceeded max depth"),
        ("\x00", "c.yaml: yaml: "),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as refused:  # noqa: PT011, its text is looked at
        read_objects("c.yaml")
    assert str(refused.value).startswith(told)


def test_bytes_that_are_no_text_and_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with pytest.raises(ValueError, match="No such file or directory"):
        read_objects(str(path))
    path.write_bytes(b"kind: x\n\xff")
    with pytest.raises(ValueError, match=r"c\.yaml:2: not UTF-8"):
        read_objects(str(path))


@pytest.mark.parametrize(
    ("text", "changes", "told"),
    [
        (listed(pod("a")), {}, "objects has no Node; add"),
        ("", {}, r"objects has no Node \(nothing for a scheduler in .*c\.yaml\); add"),
        (listed(node("a"), pod("b", nodeName="a")), {}, "objects has no Pod that waits for a node"),
        (listed(node("a"), node("a"), pod("b")), {}, "files have Node a twice"),
        (listed(node("a"), pod("b"), pod("c")), {"interval": "40s"}, "objects has 2 Pods, which take 80s to come"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(
    text: str, changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError, match=told):
        workload(tmp_path / "c.yaml", text, **changes)
