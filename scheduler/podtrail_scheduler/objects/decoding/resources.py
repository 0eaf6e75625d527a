"""What a Pod takes of a node (KEP-753 sidecars, KEP-1287 resizes in place, KEP-2837 Pod-level resources).

Sums are in billionths and rounded up once, as kube-scheduler's are.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from podtrail_scheduler.objects.quantities import CPU, HUGE_PAGES, MEMORY, NANO, amount, is_counted

from .reading import Json, items, part, quantities, text

# What a container that asks for nothing counts as when nodes are scored, in billionths: 100m and 200 MiB.
_DEFAULTS = {CPU: NANO // 10, MEMORY: 200 * 1024**2 * NANO}

Amounts = dict[str, int]


class ContainerDemand(NamedTuple):
    """What takes room of a container or init container; `restartable` is a sidecar's."""

    name: str
    requests: Amounts
    restartable: bool


def container(each: Json) -> ContainerDemand:
    """What takes room of a container or init container."""
    limits = part(each, "resources")
    return ContainerDemand(
        text(each, "name"),
        quantities(limits, "requests", "resources") if limits else {},
        each.get("restartPolicy") == "Always",
    )


class ContainerResources(NamedTuple):
    """A container's status: what the kubelet has allocated to it and what is in force."""

    name: str
    allocated: Amounts | None
    in_force: Amounts | None


def container_status(each: Json) -> ContainerResources:
    """What resizing in place has come to for one container."""
    in_force = part(each, "resources")
    return ContainerResources(
        text(each, "name"),
        quantities(each, "allocatedResources") if "allocatedResources" in each else None,
        quantities(in_force, "requests", "resources") if "requests" in in_force else None,
    )


def requested(containers: tuple[ContainerDemand, ...], init: tuple[ContainerDemand, ...]) -> Amounts:
    """What the containers of a Pod ask for together."""
    return _together(containers, init, lambda each: each.requests, {})


class PodDemand(NamedTuple):
    """A Pod's effective requests, and (cpu, memory) with the defaults of containers that ask for nothing.

    `of_containers` is without Pod-level resources, with the defaults; None when there are no such resources.
    """

    requests: Mapping[str, int]
    nonzero: tuple[int, int]
    of_containers: Mapping[str, int] | None


def demand(
    spec: Json, status: Json, containers: tuple[ContainerDemand, ...], init: tuple[ContainerDemand, ...]
) -> PodDemand:
    """The larger of what is asked for, allocated and in force; Pod-level resources in place of the containers' sum."""
    pod_level = _pod_level(spec, status)
    overhead = quantities(spec, "overhead", "spec") if "overhead" in spec else {}
    statuses = _statuses(status)
    infeasible = _resize_is_infeasible(status)
    plain = _effective(containers, init, statuses, infeasible, {}) | pod_level
    defaults = {name: each for name, each in _DEFAULTS.items() if not pod_level or name not in plain}
    nonzero = _effective(containers, init, statuses, infeasible, defaults) | pod_level if defaults else dict(plain)
    _add(plain, overhead)
    _add(nonzero, overhead)
    of_containers = None
    if pod_level:
        defaulted = _together(containers, init, lambda each: each.requests, _DEFAULTS)
        _add(defaulted, overhead)
        of_containers = _counted(defaulted)
    cpu_and_memory = amount(CPU, nonzero.get(CPU, 0)), amount(MEMORY, nonzero.get(MEMORY, 0))
    return PodDemand(_counted(plain), cpu_and_memory, of_containers)


def _counted(amounts: Amounts) -> dict[str, int]:
    return {name: amount(name, each) for name, each in amounts.items() if is_counted(name)}


def _pod_level(spec: Json, status: Json) -> Amounts:
    if "resources" not in spec:
        return {}
    wanted = quantities(part(spec, "resources", "spec"), "requests", "spec.resources")
    if not any(_is_pod_level(name) for name in wanted):
        return {}
    in_force = part(status, "resources", "status")
    if in_force:
        wanted = {} if _resize_is_infeasible(status) else wanted
        _raise(wanted, quantities(in_force, "requests", "status.resources"))
        _raise(wanted, quantities(status, "allocatedResources", "status"))
    return {name: each for name, each in wanted.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)


def _statuses(status: Json) -> dict[str, ContainerResources]:
    found = (
        *items(status, "initContainerStatuses", container_status, "status"),
        *items(status, "containerStatuses", container_status, "status"),
    )
    return {each.name: each for each in found if each.allocated is not None or each.in_force is not None}


def _resize_is_infeasible(status: Json) -> bool:
    reasons = dict(reversed(items(status, "conditions", _reason, "status"))) if "conditions" in status else {}
    return reasons.get("PodResizePending") == "Infeasible"


def _reason(condition: Json) -> tuple[str, str]:
    return text(condition, "type"), text(condition, "reason")


def _effective(
    containers: tuple[ContainerDemand, ...],
    init: tuple[ContainerDemand, ...],
    statuses: Mapping[str, ContainerResources],
    infeasible: bool,
    defaults: Mapping[str, int],
) -> Amounts:
    wanted = _together(containers, init, lambda each: each.requests, defaults)
    if not statuses:
        return wanted

    def fallback(each: ContainerDemand) -> Amounts:
        return {} if infeasible else each.requests

    def allocated(each: ContainerDemand) -> Amounts:
        status = statuses.get(each.name)
        return fallback(each) if status is None or status.allocated is None else status.allocated

    def in_force(each: ContainerDemand) -> Amounts:
        status = statuses.get(each.name)
        return allocated(each) if status is None or status.in_force is None else status.in_force

    total = {} if infeasible else wanted
    _raise(total, _together(containers, init, in_force, defaults))
    _raise(total, _together(containers, init, allocated, defaults))
    return total


def _together(
    containers: tuple[ContainerDemand, ...],
    init: tuple[ContainerDemand, ...],
    of: Callable[[ContainerDemand], Amounts],
    defaults: Mapping[str, int],
) -> Amounts:
    """The containers' sum, or what starting takes if more: init containers run one by one, beside sidecars."""
    total: Amounts = {}
    for each in containers:
        _add(total, {**defaults, **of(each)})
    if not init:
        return total
    sidecars: Amounts = {}
    starting: Amounts = {}
    for each in init:
        takes = {**defaults, **of(each)}
        if each.restartable:
            _add(total, takes)
            _add(sidecars, takes)
            takes = sidecars
        else:
            _add(takes, sidecars)
        _raise(starting, takes)
    _raise(total, starting)
    return total


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, each in more.items():
        total[name] = total.get(name, 0) + each


def _raise(total: Amounts, least: Mapping[str, int]) -> None:
    for name, each in least.items():
        if each > total.get(name, -1):
            total[name] = each
