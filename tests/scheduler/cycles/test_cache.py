"""The cache follows the watch: what it holds after any changes is what it would hold had it seen only their outcome."""

import gc
import tracemalloc

from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.framework.image_states import ImageState
from podtrail_scheduler.objects import Node

from tests.scheduler.bench import ROOMY, Bench, pod

MIB = 1024**2


def test_images_of_a_node_that_goes_count_no_more() -> None:
    cache = Cache()
    for name in ("n1", "n2", "n3"):
        cache.set_node(Node(name, images={"app:v1": 500 * MIB, f"only-on-{name}:v1": MIB}))
    cache.remove_node("n2")
    images = cache.nodes()[0].images
    assert images.get("app:v1") == ImageState(500 * MIB, 2)
    assert images.get("only-on-n2:v1") is None


def test_a_node_with_images_that_is_deleted_leaves_the_others_to_be_scheduled_on() -> None:
    nodes = [Node(name, allocatable=ROOMY, images={"app:v1": 500 * MIB}) for name in ("n1", "n2")]
    bench = Bench(nodes=nodes)
    bench.api_server.remove_node("n1")
    assert bench.attempt(pod("a", images=("app:v1",))).node == "n2"


def test_nodes_that_come_and_go_leave_nothing_behind() -> None:
    cache = Cache()

    def churn(names: range) -> int:
        for number in names:
            for _ in range(2):
                cache.set_node(Node(f"n{number}", images={f"app:{number}": MIB}))
                cache.set_pod(pod(f"p{number}").on(f"n{number}"))
                cache.remove_node(f"n{number}")
            cache.remove_pod(f"p{number}")
        assert not cache.nodes()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    gc.freeze()  # only what this test makes is looked through
    tracemalloc.start()
    try:
        first = churn(range(1000, 1300))
        assert churn(range(2000, 2300)) - first < 8192
    finally:
        tracemalloc.stop()
        gc.unfreeze()
