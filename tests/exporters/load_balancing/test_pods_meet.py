"""`routing_key: pod`: what several agents tell of a Pod meets at one backend, without their talking to each other."""

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from uuid import UUID

from podtrail.otlp import Batch, Group, Value
from tests.exporters.load_balancing.balanced import balancing, gateways, where
from tests.pod_identity.test_keys import group
from tests.pod_identity.told_directory import CLIENT, CONTAINERD, KUBELET, SCHEDULER, SERVER

PODS = 24


class Pod:
    """One Pod, and what each agent has of it; each trace by itself."""

    def __init__(self, number: int) -> None:
        self.name = f"web-{number}"
        self.uid = str(UUID(int=number + 1))
        self.sandbox = f"{number + 1:064x}"
        self.traces: list[bytes] = []
        self._numbers = iter(range(1000 * (number + 1), 1000 * (number + 2)))

    def scheduler(self) -> Iterator[Group]:
        """Three attempts, and the binding."""
        for _ in range(3):
            yield self._told(self._named, SCHEDULER, name="SchedulePod")
        url = f"https://api:6443/api/v1/namespaces/ns/pods/{self.name}/binding"
        yield self._told({"url.full": url}, SCHEDULER, kind=CLIENT)

    def server(self) -> Iterator[Group]:
        """Its creation, and a request about it."""
        yield self._told({"key": f"/pods/ns/{self.name}"}, name="Create etcd3", parent=b"p" * 8)
        path = f"/api/v1/namespaces/ns/pods/{self.name}/status"
        yield self._told({"url.path": path, "audit-id": self.uid}, kind=SERVER)

    def node(self) -> Iterator[Group]:
        """Syncs of the kubelet, and the runtime, which names it once."""
        yield self._told(self._named, KUBELET, name="syncPod")
        made = {"sandbox.id": self.sandbox, "sandbox.name": f"{self.name}_ns_{self.uid}_0"}
        yield self._told(made, CONTAINERD)
        yield self._told({"sandbox.id": self.sandbox}, CONTAINERD)

    @property
    def _named(self) -> Mapping[str, Value]:
        return {"k8s.pod.uid": self.uid, "k8s.namespace.name": "ns", "k8s.pod.name": self.name}

    def _told(self, attributes: Mapping[str, Value], *resource: bytes, **span: object) -> Group:
        made = group(next(self._numbers), attributes, *resource, **span)  # type: ignore[arg-type]
        self.traces.append(made.trace_id)
        return made


async def test_attempts_creation_and_the_nodes_spans_of_each_pod_are_at_one_backend() -> None:
    pods = [Pod(number) for number in range(PODS)]
    told = [[Pod.scheduler, Pod.scheduler], [Pod.server], [Pod.node]]
    async with gateways(5) as backends, AsyncExitStack() as stack:
        for of_agent in told:
            agent = await stack.enter_async_context(balancing(backends, routing_key="pod"))
            for tell in of_agent:
                for pod in pods:
                    agent.offer(Batch(list(tell(pod)), arrived=0))
                await agent.settle()
            assert agent.ledger.delivered == sum(len(list(tell(Pod(0)))) for tell in of_agent) * PODS
        at = where(backends)
        of_pods = [{place for trace in pod.traces for place in at[trace]} for pod in pods]
        assert {len(places) for places in of_pods} == {1}
        assert {len(pod.traces) for pod in pods} == {4 + 4 + 2 + 3}
        assert len(set.union(*of_pods)) > 1, "and the Pods are spread"


async def test_by_trace_they_would_not_meet() -> None:
    pod = Pod(0)
    async with gateways(5) as backends, balancing(backends) as agent:
        agent.offer(Batch([*pod.scheduler(), *pod.server(), *pod.node()], arrived=0))
        await agent.settle()
        assert len({place for places in where(backends).values() for place in places}) > 1
