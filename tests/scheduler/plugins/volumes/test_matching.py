"""The volume for a claim on a node against looking at every volume."""

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.objects import (
    Node,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
)
from podtrail_scheduler.plugins.volume_binding.matching import candidates

from tests.sizes import large

VALUES = st.sampled_from("abc")
CONDITIONS = st.builds(
    Requirement,
    st.sampled_from(("host", "zone")),
    st.sampled_from(("In", "NotIn", "Exists")),
    st.lists(VALUES, max_size=2).map(tuple),
)
TERMS = st.lists(CONDITIONS, min_size=1, max_size=2).map(lambda each: NodeSelectorTerm(tuple(each)))
AFFINITIES = st.none() | st.lists(TERMS, max_size=2).map(lambda terms: NodeSelector(tuple(terms)))
VOLUMES = st.lists(st.tuples(st.integers(1, 4), AFFINITIES, st.sampled_from(("", "mine", "theirs"))), max_size=6)
LABELS = st.dictionaries(st.sampled_from(("host", "zone")), VALUES)


@given(VOLUMES, LABELS, st.integers(1, 3), st.sets(st.integers(0, 5), max_size=2))
@settings(max_examples=large(60, 1000), deadline=None)
def test_the_volume_is_the_smallest_within_reach_or_the_one_that_is_kept(
    offered: list[tuple[int, NodeSelector | None, str]], labels: dict[str, str], request: int, taken: set[int]
) -> None:
    claim = PersistentVolumeClaim("mine", uid="u", request=request)
    volumes = [
        PersistentVolume(
            f"v{n}", capacity=size, node_affinity=affinity, claim_ref=("default", owner, "") if owner else None
        )
        for n, (size, affinity, owner) in enumerate(offered)
    ]
    node, names = Node("n", labels=labels), {f"v{n}" for n in taken}
    large = [each for each in volumes if each.capacity >= request]
    within = [each for each in large if each.node_affinity is None or each.node_affinity.matches(labels, "")]
    kept = [each for each in large if each.claim_ref == ("default", "mine", "")]
    free = [each for each in within if each.claim_ref is None and each.name not in names]
    found = candidates(claim, volumes).on(node, names)
    if kept:
        assert found is (kept[0] if kept[0] in within and kept[0].name not in names else None)
    elif free:
        assert found is not None
        assert found in free
        assert found.capacity == min(each.capacity for each in free)
    else:
        assert found is None
