from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.framework.image_states import ImageStates
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Affinity, HostPort, Node, Pod, PodAffinity, PodAffinityTerm, Volume

from tests.sizes import large

MIB = 1024**2
TERM = PodAffinityTerm(None)


def contents(info: NodeInfo) -> dict[str, object]:
    return {name: getattr(info, name) for name in NodeInfo.__slots__ if name not in ("generation", "images")}


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    anti = PodAffinity((TERM,)) if draw(st.booleans()) else PodAffinity()
    return Pod(
        "p",
        uid=draw(st.uuids()).hex,
        requests=draw(st.dictionaries(st.sampled_from(("cpu", "memory", "example.com/gpu")), st.integers(0, 9))),
        host_ports=tuple(
            HostPort(port, host_ip=address)
            for port, address in draw(
                st.lists(st.tuples(st.integers(1, 2), st.sampled_from(("", "0.0.0.0", "10.0.0.1"))), max_size=3)
            )
        ),
        volumes=tuple(Volume("v", claim_name=name) for name in draw(st.lists(st.sampled_from("ab"), max_size=3))),
        affinity=Affinity(
            pod_affinity=draw(st.sampled_from((PodAffinity(), PodAffinity((TERM,))))), pod_anti_affinity=anti
        ),
    )


@settings(max_examples=large(30, 500))
@given(st.lists(st.tuples(pods(), st.booleans()), max_size=8))
def test_sums_after_pods_came_and_went_are_those_of_the_pods_that_stayed(coming: list[tuple[Pod, bool]]) -> None:
    info, fresh = NodeInfo(Node("n")), NodeInfo(Node("n"))
    for pod, _ in coming:
        info.add(pod)
    for pod, stays in coming:
        if stays:
            fresh.add(pod)
        else:
            info.remove(pod)
    assert contents(info) == contents(fresh)


@settings(max_examples=large(30, 500))
@given(pods(), pods())
def test_a_clone_shares_nothing_that_changes(first: Pod, second: Pod) -> None:
    info = NodeInfo(Node("n"))
    info.add(first)
    before, copy = contents(info.clone()), info.clone()
    copy.add(second)
    copy.remove(first)
    assert contents(info) == before


def test_every_change_gives_a_generation_that_no_node_had_before() -> None:
    first, second = NodeInfo(Node("a")), NodeInfo(Node("a"))
    pod = Pod("p", uid="u")
    seen = [first.generation, second.generation]
    first.add(pod)
    seen.append(first.generation)
    first.remove(pod)
    seen.append(first.generation)
    second.set_node(Node("a", unschedulable=True))
    seen.append(second.generation)
    assert len(set(seen)) == 5
    assert first.clone().generation == first.generation


def test_a_port_at_any_address_conflicts_with_every_address() -> None:
    info = NodeInfo(Node("n"))
    info.add(Pod("p", uid="1", host_ports=(HostPort(80, host_ip="10.0.0.1"), HostPort(81))))
    assert not info.has_port_free(HostPort(80))
    assert not info.has_port_free(HostPort(80, host_ip="0.0.0.0"))
    assert not info.has_port_free(HostPort(80, host_ip="10.0.0.1"))
    assert info.has_port_free(HostPort(80, host_ip="10.0.0.2"))
    assert info.has_port_free(HostPort(80, "UDP"))
    assert not info.has_port_free(HostPort(81, host_ip="10.0.0.2"))


def test_containers_that_ask_for_nothing_count_in_scores() -> None:
    info = NodeInfo(Node("n"))
    info.add(Pod("bare", uid="1"))
    info.add(Pod("asks", uid="2", requests={"cpu": 300}, nonzero_requests=(400, 5)))
    assert (info.nonzero_cpu, info.nonzero_memory, info.requested) == (500, 200 * MIB + 5, {"cpu": 300})


def test_images_are_counted_over_the_nodes_with_the_size_that_the_first_one_told() -> None:
    images = ImageStates()
    first = NodeInfo(Node("a", images={"x": 10}), images)
    second = NodeInfo(Node("b", images={"x": 30, "y": 1}), images)
    assert images.get("x") == (10, 2)
    second.set_node(Node("b", images={"x": 30}))
    first.leave()
    assert images.get("x") == (10, 1)
    assert images.get("y") is None
    second.leave()
    assert images.get("x") is None
