"""What others do while a Pod is being bound, and what the API server does: nothing is double-bound, nothing stuck."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from podtrail_kubernetes.leader_election import LeadershipLost

pytestmark = pytest.mark.control_plane

ELECTION = {"leaderElect": True, "leaseDuration": "60s", "renewDeadline": "5s", "retryPeriod": "500ms"}


class Held:
    """A PreBind plugin's class that holds each Pod up the first time until `go` is set."""

    def __init__(self, name: str = "web") -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self._name = name

    @property
    def plugins(self) -> Mapping[str, Any]:
        held = self

        class Hold:
            name = "Hold"

            def __init__(self, *_: object) -> None:
                """Needs nothing."""

            def pre_bind(self, state: object, pod: Any, node_name: str) -> None:
                if pod.name == held._name and not held.go.is_set():
                    held.reached.set()
                    assert held.go.wait(120)

        return {"Hold": Hold}


class Watched:
    """All that ever happened to Pods of a namespace, as the API server's watch cache tells it afterwards."""

    def __init__(self, api: Any, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._version = api.get(self._path)["metadata"]["resourceVersion"]

    def nodes(self) -> dict[str, set[str]]:
        """The nodes that each Pod was ever on, by uid."""
        query = f"?watch=true&resourceVersion={self._version}&timeoutSeconds=1"
        text = self._api.request("GET", f"{self._path}{query}")
        lines = text.splitlines() if isinstance(text, str) else [json.dumps(text)]
        on: dict[str, set[str]] = {}
        for line in lines:
            pod = json.loads(line)["object"]
            if node := pod["spec"].get("nodeName"):
                on.setdefault(pod["metadata"]["uid"], set()).add(node)
        return on


def bound(pod: Any) -> Any:
    return pod["spec"].get("nodeName")


def bind(api: Any, pods: str, name: str, node: str) -> None:
    """Binds a Pod as another scheduler would."""
    api.create(f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}})


@pytest.fixture
def race(control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any) -> Callable[..., None]:
    """Has `meanwhile(api, pods)` happen while the Pod `web` is reserved and not yet bound.

    Afterwards a Pod that needs the whole node must find it as free as `fits` says: whatever was reserved is given back.
    """

    def run(
        meanwhile: Callable[[Any, str], None], then: Callable[[Any, str], Any], *, fits: bool, **options: Any
    ) -> None:
        api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
        api.node(f"{namespace}-a", {"cpu": "1"}, labels={"for": namespace})
        selector = {"nodeSelector": {"for": namespace}}

        async def test() -> None:
            held = Held()
            async with running(namespace, plugins=held.plugins, **options):
                await asyncio.to_thread(api.create, pods, make_pod("web", namespace, "1", **selector))
                assert await asyncio.to_thread(held.reached.wait, 120)
                await asyncio.to_thread(meanwhile, api, pods)
                held.go.set()
                await until(lambda: then(api, pods))
                if fits:
                    await asyncio.to_thread(api.create, pods, make_pod("next", namespace, "1", **selector))
                    await until(lambda: api.get(f"{pods}/next"), bound)

        asyncio.run(test())

    return run


def test_a_pod_deleted_while_it_is_bound_gives_its_place_back(race: Callable[..., None]) -> None:
    race(lambda api, pods: api.delete(f"{pods}/web"), lambda api, pods: not api.get(pods)["items"], fits=True)


def test_a_pod_changed_while_it_is_bound_is_bound(race: Callable[..., None]) -> None:
    def change(api: Any, pods: str) -> None:
        api.patch(f"{pods}/web", {"metadata": {"labels": {"changed": "yes"}}})

    race(change, lambda api, pods: bound(api.get(f"{pods}/web")), fits=False)


def test_a_pod_bound_by_another_meanwhile_stays_where_it_is(race: Callable[..., None], namespace: str) -> None:
    elsewhere = f"{namespace}-elsewhere"

    def steal(api: Any, pods: str) -> None:
        api.node(elsewhere)
        bind(api, pods, "web", elsewhere)

    race(steal, lambda api, pods: bound(api.get(f"{pods}/web")) == elsewhere, fits=True)


def test_a_pod_recreated_under_its_name_is_scheduled_by_itself(
    race: Callable[..., None], namespace: str, make_pod: Any
) -> None:
    """The binding names the uid: what was decided for the old Pod does not happen to the new one."""

    def recreate(api: Any, pods: str) -> None:
        api.delete(f"{pods}/web")
        api.create(pods, make_pod("web", namespace, "1", nodeSelector={"for": "nobody"}))

    def refused(api: Any, pods: str) -> bool:
        pod = api.get(f"{pods}/web")
        assert not bound(pod)
        return any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", ()))

    race(recreate, refused, fits=True)


async def test_a_node_deleted_and_made_anew_takes_pods_again(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods, node = control_plane.api, f"/api/v1/namespaces/{namespace}/pods", f"{namespace}-n"
    api.node(node, {"cpu": "1"}, labels={"for": namespace})
    selector = {"nodeSelector": {"for": namespace}}

    async with running(namespace):
        await asyncio.to_thread(api.delete, f"/api/v1/nodes/{node}")
        await asyncio.to_thread(api.create, pods, make_pod("web", namespace, "1", **selector))
        await until(lambda: api.get(f"{pods}/web"), lambda pod: pod["status"].get("conditions"))
        await asyncio.to_thread(api.node, node, {"cpu": "1"}, labels={"for": namespace})
        await until(lambda: api.get(f"{pods}/web"), bound)


def test_two_that_schedule_the_same_pods_bind_each_once(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    for number in range(4):
        api.node(f"{namespace}-{number}", {"cpu": "16"}, labels={"for": namespace})
    watched = Watched(api, namespace)

    async def test() -> None:
        async with running(namespace) as first, running(namespace) as second:
            for number in range(30):
                wanted = make_pod(f"p{number}", namespace, nodeSelector={"for": namespace})
                await asyncio.to_thread(api.create, pods, wanted)
            await until(lambda: api.get(pods)["items"], lambda items: all(bound(pod) for pod in items))
            await until(lambda: len(first.attempts) + len(second.attempts) >= 30)
        results = Counter(attempt.result for attempt in (*first.attempts, *second.attempts))
        assert results["Success"] == 30, results

    asyncio.run(test())
    on = watched.nodes()
    assert len(on) == 30
    assert all(len(nodes) == 1 for nodes in on.values())


def test_a_leader_that_loses_its_lease_ends_and_another_goes_on(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", {"cpu": "64"}, labels={"for": namespace})
    election = ELECTION | {"resourceNamespace": namespace, "resourceName": "scheduler"}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/scheduler"
    watched = Watched(api, namespace)

    def create(start: int) -> None:
        for number in range(start, start + 10):
            api.create(pods, make_pod(f"p{number}", namespace, nodeSelector={"for": namespace}))

    def all_bound() -> bool:
        return all(bound(pod) for pod in api.get(pods)["items"])

    async def test() -> None:
        async with running(namespace, leaderElection=election) as first:
            await asyncio.to_thread(create, 0)
            await until(all_bound)
            async with running(namespace, leaderElection=election) as second:
                await asyncio.to_thread(create, 10)
                await until(all_bound)
                assert not second.attempts
                await asyncio.to_thread(api.patch, lease, {"spec": {"holderIdentity": "thief"}})
                with pytest.raises(LeadershipLost):
                    await first.ended()
                await asyncio.to_thread(create, 20)
                await asyncio.to_thread(api.patch, lease, {"spec": {"holderIdentity": ""}})
                await until(all_bound)
                assert second.attempts

    asyncio.run(test())
    on = watched.nodes()
    assert len(on) == 30
    assert all(len(nodes) == 1 for nodes in on.values())


async def test_an_api_server_that_is_restarted_in_the_middle_leaves_nothing_undone(
    mortal_control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = mortal_control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    nodes = [f"{namespace}-{number}" for number in range(2)]
    for node in nodes:
        api.node(node, {"cpu": "4", "pods": "10"}, labels={"for": namespace})

    def create(start: int) -> None:
        for number in range(start, start + 10):
            api.create(pods, make_pod(f"p{number}", namespace, nodeSelector={"for": namespace}))

    async with running(namespace):
        await asyncio.to_thread(create, 0)
        mortal_control_plane.stop_one("kube-apiserver", kill=True)
        mortal_control_plane.launch_apiserver()
        await asyncio.to_thread(mortal_control_plane.await_apiserver)
        await asyncio.to_thread(create, 10)
        items = await until(lambda: api.get(pods)["items"], lambda items: all(bound(pod) for pod in items))
        # 20 Pods, 20 places: had one been counted twice or forgotten, it would not have come out even.
        assert Counter(bound(pod) for pod in items) == dict.fromkeys(nodes, 10)


async def test_an_api_server_that_comes_later_is_waited_for(
    mortal_control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = mortal_control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n")
    mortal_control_plane.stop_one("kube-apiserver", kill=True)
    election = ELECTION | {"resourceNamespace": namespace, "resourceName": "scheduler"}

    async with running(namespace, leaderElection=election, delayCacheUntilActive=True):
        mortal_control_plane.launch_apiserver()
        await asyncio.to_thread(mortal_control_plane.await_apiserver)
        await asyncio.to_thread(api.create, pods, make_pod("web", namespace))
        await until(lambda: api.get(f"{pods}/web"), bound)
