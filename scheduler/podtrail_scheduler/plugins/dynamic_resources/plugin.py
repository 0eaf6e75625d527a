"""The plugin DynamicResources."""

from collections.abc import Mapping, Sequence

from podtrail_scheduler.configuration.args import DynamicResourcesArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.extension_points import MAX_SCORE, PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim
from podtrail_scheduler.objects.resource import Allocation, DeviceClass, DeviceTaintRule, ResourceClaim
from podtrail_scheduler.plugins.device_allocation.allocating import Allocator, InvalidPoolsError
from podtrail_scheduler.plugins.device_allocation.chosen import UnallocatableError, alternatives, request_name
from podtrail_scheduler.plugins.device_allocation.claims import ClaimTracker, MissingClaimError, is_reserved_for
from podtrail_scheduler.plugins.device_allocation.pools import Pools
from podtrail_scheduler.plugins.device_allocation.searching import TimedOutError
from podtrail_scheduler.plugins.device_allocation.selecting import DeviceSelectors, UnselectableError

from .conditions import BindingFailedError, has_conditions, is_overdue, is_ready
from .extended import UNWRITTEN, ClaimOfPod, ExtendedClaims, OnNode
from .hints import ClaimHints
from .result import allocation_of
from .writing import ClaimWriter, UnreservableError

ALTERNATIVES = 8
"""As many alternatives a request may have at most; the first counts as many points."""
OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
"""What a node declares whose kubelet can do without preparing a device."""
MOST_USERS = 256
"""How many Pods may use one claim."""
IN_USE = unresolvable("resourceclaim in use")
NOT_ALLOCATABLE = unresolvable("cannot allocate all claims")
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")


class _Attempt:
    """An attempt's claims and what they would get on each node that was asked about."""

    __slots__ = ("allocator", "by_node", "claims", "extended", "extended_by_node", "of_pod", "pending", "unavailable")

    def __init__(
        self, claims: list[ResourceClaim], of_pod: ClaimOfPod | None = None, allocator: Allocator | None = None
    ) -> None:
        self.claims = claims
        self.of_pod = of_pod
        self.extended = of_pod.claim if of_pod is not None else None
        """The last of the claims, when that is the one for extended resources."""
        self.extended_by_node: dict[str, OnNode] = {}
        self.allocator = allocator
        """None when all claims have their devices."""
        self.by_node: dict[str, Mapping[str, Allocation]] = {}
        """Allocations of each node, by the claim's uid."""
        self.unavailable: set[int] = set()
        """Indexes of the claims whose devices some node cannot use."""
        self.pending: Mapping[str, Allocation] = {}
        """What was decided at Reserve, by the claim's uid."""


class DynamicResources:
    """Filters by the devices that a node can use, scores by alternatives, and writes claims before the Pod is bound."""

    name = "DynamicResources"
    in_tree = True

    def __init__(self, handle: Handle, args: DynamicResourcesArgs | None = None) -> None:
        self._handle = handle
        args = args or DynamicResourcesArgs()
        self._timeout = args.filter_timeout or 0
        self._binding_timeout = args.binding_timeout
        self._claims = handle.listers.shared(ClaimTracker)
        self._extended = ExtendedClaims(handle.listers)
        self._pools = Pools(handle.listers)
        self._selectors = DeviceSelectors()
        self._writer = ClaimWriter(handle, self._claims)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Holds a Pod back while claims of it are not there; in words for its user where these see them (KEP-5501)."""
        missing = self._missing(pod)
        if missing is None:
            return None
        return unresolvable(missing.awaited if self._handle.pre_enqueue_pod_status else str(missing))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips without claims; refuses Pods whose claims are missing, being allocated or of an unknown class."""
        state.write(_Attempt([]))
        missing = self._missing(pod)
        if missing is not None:
            return unresolvable(str(missing))
        claims = self._claims.of(pod) if pod.resource_claims else []
        of_pod = self._extended.of(pod)
        extended = of_pod.claim if of_pod is not None else None
        if extended is not None:
            claims.append(extended)
        if not claims:
            return SKIP
        for claim in claims:
            if claim is not extended and (refusal := self._unanswerable(claim, pod)) is not None:
                return refusal
        allocator = None
        if any(claim.allocation is None for claim in claims):
            self._pools.refresh()
            self._selectors.refresh(self._pools.version)
            conditions = self._binding_timeout is not None
            rules = list(self._handle.listers.all(DeviceTaintRule))
            allocator = Allocator(self._claims.taken(), self._class, self._selectors, rules, conditions=conditions)
        state.write(_Attempt(claims, of_pod, allocator))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Refuses a node that cannot use the devices of a claim, or has none for a claim that has no devices yet."""
        attempt = state.read(_Attempt)
        claims = attempt.claims
        if attempt.of_pod is not None:
            there = attempt.of_pod.on(node.node)
            if isinstance(there, Status):
                return there
            if len(claims) == 1 and not there.claim.requests:
                return None
            attempt.extended_by_node[node.name] = there
            claims = [*claims[:-1], there.claim]
        if attempt.allocator is not None:
            allocated = self._allocate(claims, attempt.allocator, node.node)
            if isinstance(allocated, Status):
                return allocated
            attempt.by_node[node.name] = allocated
        unavailable = [index for index, claim in enumerate(attempt.claims) if not self._usable_on(claim, node.node)]
        attempt.unavailable.update(unavailable)
        return NOT_AVAILABLE if unavailable else None

    def post_filter(self, state: CycleState, pod: Pod, refusals: Mapping[str, Status]) -> PostFilterResult:  # noqa: ARG002
        """Has a claim that only this Pod uses give devices back which are out of reach.

        A claim for extended resources that an earlier attempt has left is deleted.
        Where an earlier plugin's PreFilter ended the attempt there is nothing to look at, which is told as an error.
        """
        try:
            attempt = state.read(_Attempt)
        except KeyError:
            return PostFilterResult(error("not found"), None)
        for index in sorted(attempt.unavailable):
            claim = attempt.claims[index]
            if claim is not attempt.extended and all(each.uid == pod.uid for each in claim.reserved_for):
                self._handle.clock.spawn(self._writer.deallocate(claim))
                return PostFilterResult(unschedulable("deallocation of ResourceClaim completed"), None)
        if attempt.extended is not None and attempt.extended.name != UNWRITTEN:
            self._handle.clock.spawn(self._writer.delete(attempt.extended))
            return PostFilterResult(unschedulable("deletion of ResourceClaim completed"), None)
        return PostFilterResult(unschedulable(), None)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:  # noqa: ARG002
        """The earlier the alternatives that the claims get, the more."""
        attempt = state.read(_Attempt)
        there = attempt.by_node.get(node.name)
        if there is None:
            return 0
        return sum(_points(claim, claim.allocation or there[claim.uid]) for claim in attempt.claims)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        """As `score`, for many nodes."""
        if not state.read(_Attempt).by_node:
            return [0] * len(nodes)
        return [self.score(state, pod, node) for node in nodes]

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:  # noqa: ARG002
        """The best node gets 100, the others their share of it."""
        best = max(scores, default=0)
        return [MAX_SCORE * score // best for score in scores] if best else list(scores)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:  # noqa: ARG002
        """Keeps the devices from other Pods until they are written."""
        attempt = state.read(_Attempt)
        if attempt.allocator is None:
            return None
        if node_name not in attempt.by_node:
            if all(claim is attempt.extended or claim.allocation is not None for claim in attempt.claims):
                return None  # the node counts the extended resources itself
            return error("claim allocation not found for node")
        attempt.pending = attempt.by_node[node_name]
        self._claims.decide(attempt.pending)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:  # noqa: ARG002
        """Lets go of the devices, and of the claims that were written for the Pod; those keep their devices.

        The claim for extended resources is deleted.
        """
        attempt = state.read(_Attempt)
        self._claims.settle(attempt.pending)
        for claim in attempt.claims:
            if claim.for_extended_resources:
                if attempt.extended is not None and claim.name != UNWRITTEN:
                    self._handle.clock.spawn(self._writer.delete(claim))
            elif claim.allocation is not None and is_reserved_for(claim, pod):
                self._handle.clock.spawn(self._writer.give_up(claim, pod))

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:  # noqa: ARG002
        """Skips without claims."""
        return None if state.read(_Attempt).claims else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Writes the allocations, and that the Pod uses the claims; waits for devices that are made ready."""
        attempt = state.read(_Attempt)
        try:
            for index, claim in enumerate(attempt.claims):
                if claim is attempt.extended:
                    await self._bind_extended(attempt, index, pod, node_name)
                elif not is_reserved_for(claim, pod):
                    attempt.claims[index] = await self._writer.reserve(claim, attempt.pending.get(claim.uid), pod)
            if self._binding_timeout is not None and any(map(has_conditions, attempt.claims)):
                note = f"waiting for binding conditions for device on node {node_name}"
                self._handle.event(pod, None, "Normal", "BindingConditionsPending", "Scheduling", note)
                await self._writer.ready(attempt.claims, self._binding_timeout)
        except UnreservableError as trouble:
            return error(str(trouble))
        self._claims.settle(attempt.pending)
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes, claims, device classes and devices that come or change."""
        hints = ClaimHints(self._claims)
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        claims = ActionType.ADD | ActionType.UPDATE | ActionType.DELETE
        changed = ActionType.ADD | ActionType.UPDATE
        generated = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        return (
            Registration(ClusterEvent(EventResource.NODE, nodes)),
            Registration(ClusterEvent(EventResource.RESOURCE_CLAIM, claims), hints.after_claim),
            Registration(generated, hints.after_target_pod),
            Registration(ClusterEvent(EventResource.DEVICE_CLASS, changed)),
            Registration(ClusterEvent(EventResource.RESOURCE_SLICE, changed)),
        )

    async def _bind_extended(self, attempt: _Attempt, index: int, pod: Pod, node_name: str) -> None:
        """Creates the claim, gives it its devices and tells of it in the Pod's status. Raises UnreservableError."""
        wanted = attempt.claims[index]
        if wanted.uid not in attempt.pending:
            return  # the node counts the resources itself
        there = attempt.extended_by_node[node_name]
        attempt.claims[index] = created = await self._writer.create(there.claim, pod)
        attempt.claims[index] = await self._writer.reserve(created, attempt.pending[wanted.uid], pod)
        await self._writer.tell(pod, ExtendedClaim(created.name, there.mappings))

    def _missing(self, pod: Pod) -> MissingClaimError | None:
        if not pod.resource_claims:
            return None
        try:
            self._claims.of(pod)
        except MissingClaimError as missing:
            return missing
        return None

    def _class(self, name: str) -> DeviceClass | None:
        return self._handle.listers.get(DeviceClass, name)

    def _unanswerable(self, claim: ResourceClaim, pod: Pod) -> Status | None:
        if claim.allocation is not None:
            full = len(claim.reserved_for) >= MOST_USERS and not is_reserved_for(claim, pod)
            return IN_USE if full else None
        if self._claims.is_pending(claim):
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        for request in claim.requests:
            wanted = alternatives(request)
            if not wanted:
                return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
            for each in wanted:
                name = request_name(request, each)
                if not each.device_class_name:
                    return error(f"request {name}: unsupported request type")
                if self._class(each.device_class_name) is None:
                    return unresolvable(f"request {name}: device class {each.device_class_name} does not exist")
        return None

    def _allocate(
        self, claims: Sequence[ResourceClaim], allocator: Allocator, node: Node
    ) -> Status | Mapping[str, Allocation]:
        wanting = [claim for claim in claims if claim.allocation is None]
        clock, timeout = self._handle.clock, self._timeout
        deadline = clock.now() + timeout
        try:
            found = allocator.allocate(
                node, self._pools.of(node), wanting, lambda: bool(timeout) and clock.now() > deadline
            )
            if found is None:
                return NOT_ALLOCATABLE
            return {
                claim.uid: allocation_of(claim, chosen, self._classes_of(claim), node.name)
                for claim, chosen in zip(wanting, found, strict=True)
            }
        except InvalidPoolsError as invalid:
            return unresolvable(str(invalid))
        except TimedOutError:
            return error(f"node {node.name}: timed out trying to allocate devices")
        except (UnallocatableError, UnselectableError) as trouble:
            return error(str(trouble))

    def _usable_on(self, claim: ResourceClaim, node: Node) -> bool:
        """Whether the devices that the claim has, if any, can be used there and may still become ready."""
        allocation = claim.allocation
        if allocation is None:
            return True
        if allocation.node_selector is not None and not allocation.node_selector.matches(node.labels, node.name):
            return False
        if OPTIONAL_OPERATIONS not in node.declared_features and any(
            each.skips_node_operations for each in allocation.devices
        ):
            return False
        if self._binding_timeout is None or not has_conditions(claim):
            return True
        try:
            return is_ready(claim) or not is_overdue(claim, self._handle.clock.now(), self._binding_timeout)
        except BindingFailedError:
            return False

    def _classes_of(self, claim: ResourceClaim) -> Mapping[str, DeviceClass]:
        names = {each.device_class_name for request in claim.requests for each in alternatives(request)}
        classes = {name: self._class(name) for name in names}
        return {name: each for name, each in classes.items() if each is not None}


def _points(claim: ResourceClaim, allocation: Allocation) -> int:
    got = {each.request for each in allocation.devices}
    return sum(
        ALTERNATIVES - index
        for request in claim.requests
        for index, each in enumerate(request.first_available)
        if request_name(request, each) in got
    )
