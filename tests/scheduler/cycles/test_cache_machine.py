"""Whatever order nodes and Pods come, change and go in: the cache holds what is, and tells what has changed."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.objects import ZONE, Node, Pod

from tests.sizes import large

NODES = st.sampled_from(["n1", "n2", "n3"])
PODS = st.sampled_from(["a", "b", "c", "d"])


class CacheMachine(RuleBasedStateMachine):
    """A watch and a scheduler do what they do, in any order; what should be true is written down beside."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.layout, self.position = -1, 0
        self.seen: dict[str, set[str]] = {}

    @rule(name=NODES, zone=st.sampled_from("xy"), size=st.integers(1, 2))
    def node_is_shown(self, name: str, zone: str, size: int) -> None:
        self.nodes[name] = Node(name, labels={ZONE: zone}, images={"app": size})
        self.cache.set_node(self.nodes[name])

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.cache.remove_node(name)

    @rule(name=NODES)
    def node_comes_back(self, name: str) -> None:
        if name in self.nodes:
            self.cache.remove_node(name)
            self.cache.set_node(self.nodes[name])

    @rule(uid=PODS, node=NODES, cpu=st.integers(1, 3))
    def pod_is_shown(self, uid: str, node: str, cpu: int) -> None:
        self.pods[uid] = Pod(uid, uid=uid, requests={"cpu": cpu}).on(node)
        self.assumed.discard(uid)
        self.cache.set_pod(self.pods[uid])

    @rule(uid=PODS)
    def pod_goes(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.discard(uid)
        self.cache.remove_pod(uid)

    @rule(uid=PODS, node=NODES)
    def pod_is_assumed(self, uid: str, node: str) -> None:
        if uid not in self.pods:
            pod = Pod(uid, uid=uid, requests={"cpu": 1})
            self.pods[uid] = pod.on(node)
            self.assumed.add(uid)
            assert self.cache.assume(pod, node) == self.pods[uid]

    @rule(uid=PODS)
    def pod_is_forgotten(self, uid: str) -> None:
        assert self.cache.forget(uid) is (uid in self.assumed)
        if uid in self.assumed:
            self.assumed.remove(uid)
            del self.pods[uid]

    @invariant()
    def each_node_has_its_pods_and_their_sum(self) -> None:
        held = {info.name: (info.node, set(info.pods), info.requested.get("cpu", 0)) for info in self.cache.nodes()}
        assert held == {
            name: (node, set(there := self.on(name)), sum(pod.requests["cpu"] for pod in there.values()))
            for name, node in self.nodes.items()
        }
        assert all(self.cache.node(info.name) is info for info in self.cache.nodes())

    @invariant()
    def pods_are_known_by_uid(self) -> None:
        for uid in "abcd":
            assert self.cache.pod(uid) == self.pods.get(uid)
            assert self.cache.is_assumed(uid) is (uid in self.assumed)
        counted = {"nodes": len(self.nodes), "pods": len(self.pods), "assumed_pods": len(self.assumed)}
        assert self.cache.sizes() == counted

    @invariant()
    def who_reads_the_changes_knows_all(self) -> None:
        infos, table = self.cache.nodes(), self.cache.table
        if table.layout != self.layout:
            self.layout = table.layout
            self.seen = {info.name: set(info.pods) for info in infos}
        else:
            for index in table.log[self.position - table.base :]:
                self.seen[infos[index].name] = set(infos[index].pods)
        self.position = table.position
        assert self.seen == {name: set(self.on(name)) for name in self.nodes}

    def on(self, node: str) -> dict[str, Pod]:
        return {uid: pod for uid, pod in self.pods.items() if pod.node_name == node}


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=large(40, 1000), stateful_step_count=30, deadline=None)
