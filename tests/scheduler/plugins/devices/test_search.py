"""The search for devices against trying out everything, on small cases."""

from collections.abc import Sequence
from itertools import permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.resource import (
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    ResourceClaim,
    ResourceSlice,
)
from podtrail_scheduler.plugins.device_allocation.allocating import Allocator
from podtrail_scheduler.plugins.device_allocation.chosen import Chosen, TakenDevices
from podtrail_scheduler.plugins.device_allocation.pools import Pools
from podtrail_scheduler.plugins.device_allocation.selecting import DeviceSelectors

from tests.sizes import large

DRIVER = "d"
NODE = Node("n")
COLOURS = st.sampled_from(("red", "blue"))


def specification(name: str, colour: str, count: int) -> DeviceSpecification:
    return DeviceSpecification(name, "any", (f"device.attributes['d'].colour == '{colour}'",), count=count)


EXACT = st.builds(lambda colour, count: [(colour, count)], COLOURS, st.integers(1, 2))
EITHER = st.lists(st.tuples(COLOURS, st.integers(1, 2)), min_size=2, max_size=2)
REQUESTS = st.lists(EXACT | EITHER, min_size=1, max_size=3)
DEVICES = st.lists(st.tuples(COLOURS, st.integers(0, 1)), min_size=1, max_size=5)


def request(index: int, alternatives: Sequence[tuple[str, int]]) -> DeviceRequest:
    name = f"r{index}"
    if len(alternatives) == 1:
        return DeviceRequest(name, specification(name, *alternatives[0]))
    return DeviceRequest(name, None, tuple(specification(f"s{n}", *each) for n, each in enumerate(alternatives)))


def possible(requests: list[list[tuple[str, int]]], devices: dict[str, tuple[str, int]], same_rack: bool) -> bool:
    """Whether any choice of alternatives and devices meets all requests."""
    for choice in product(*requests):
        wanted = [colour for colour, count in choice for _ in range(count)]
        for order in permutations(devices, len(wanted)):
            colours = all(devices[name][0] == colour for name, colour in zip(order, wanted, strict=True))
            if colours and (not same_rack or len({devices[name][1] for name in order}) <= 1):
                return True
    return False


@given(REQUESTS, DEVICES, st.sets(st.integers(0, 4), max_size=2), st.booleans())
@settings(max_examples=large(60, 1000), deadline=None)
def test_devices_are_found_whenever_there_are_any_and_are_what_was_asked_for(
    requests: list[list[tuple[str, int]]], offered: list[tuple[str, int]], used: set[int], same_rack: bool
) -> None:
    made = tuple(
        Device(f"x{n}", {"colour": DeviceAttribute("string", colour), "rack": DeviceAttribute("int", rack)})
        for n, (colour, rack) in enumerate(offered)
    )
    listers = Listers([ResourceSlice("s", DRIVER, "p", node_name="n", devices=made)])
    constraints = (DeviceConstraint("d/rack"),) if same_rack else ()
    claim = ResourceClaim(
        "c", requests=tuple(request(n, each) for n, each in enumerate(requests)), constraints=constraints
    )
    pools = Pools(listers)
    pools.refresh()
    taken = TakenDevices({DeviceId(DRIVER, "p", f"x{n}") for n in used}, {})
    allocator = Allocator(taken, lambda name: DeviceClass(name), DeviceSelectors())
    found = allocator.allocate(NODE, pools.of(NODE), [claim], lambda: False)
    free = {f"x{n}": each for n, each in enumerate(offered) if n not in used}
    assert (found is not None) == possible(requests, free, same_rack)
    if found is not None:
        [chosen] = found
        check(chosen, claim, free, same_rack)


def check(chosen: list[Chosen], claim: ResourceClaim, free: dict[str, tuple[str, int]], same_rack: bool) -> None:
    names = [each.candidate.device.name for each in chosen]
    assert len(set(names)) == len(names)
    assert set(names) <= free.keys()
    if same_rack:
        assert len({free[name][1] for name in names}) <= 1
    for each in claim.requests:
        got = [one.specification for one in chosen if one.request is each]
        assert all(other is got[0] for other in got)
        assert len(got) == got[0].count
