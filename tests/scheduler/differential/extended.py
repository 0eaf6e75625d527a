"""Cases of extended resources: of the nodes themselves, and of devices whose class stands for one."""

from random import Random

from .builders import node, pod
from .claims import device_class, slice_of
from .nodes import Made
from .profiles import DEFAULT

_RESOURCE = "example.com/accelerator"


def extended_resources(rng: Random) -> Made:
    """One node counts the resource, or else has devices of the class; one has neither."""
    mark = rng.randrange(10_000)
    backed = {**device_class("gpu"), "spec": {**device_class("gpu")["spec"], "extendedResourceName": _RESOURCE}}
    counted = rng.random() < 0.4
    nodes = [node("n0", extended={_RESOURCE: "1"} if counted else None), node("n1")]
    slices = [] if counted else [slice_of(f"s{mark}", "n0")]
    return DEFAULT, [backed, *slices, *nodes], [pod("p0", {"cpu": "100m", _RESOURCE: "1"})]
