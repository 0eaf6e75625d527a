"""What our scheduler does with the Pods of a case: the whole of it, on the simulated API server, in virtual time.

Where nodes have equal scores kube-scheduler draws one, and so do we: each Pod meets the cluster as kube-scheduler left
it, so that a different draw is no difference afterwards.
"""

import json
from collections.abc import Sequence
from functools import cache, partial

from podtrail_scheduler.attempt import AttemptRecord, Explanation
from podtrail_scheduler.cache import Cache
from podtrail_scheduler.cluster.simulated.api_server import PodPlan, SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.durations import SECOND
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.objects.resource import ResourceClaim
from podtrail_scheduler.plugins.registry import available, extension_points, make_profile
from podtrail_scheduler.scheduler import Scheduler

from .answers import Answer, Answers
from .builders import as_stored
from .case import Case, Change, Object, merged
from .claims import allocated, told
from .profiles import configuration

_START = 1_767_225_600 * SECOND + 7200 * SECOND
"""Two hours after the first of the Pods that run began."""
_ATTEMPT = 5 * SECOND
"""Longer than an attempt takes, shorter than a Pod takes to terminate."""
_PLAN = PodPlan(None, 3600 * SECOND, 0, "")


@cache
def _profiles() -> dict[str, ProfileConfiguration]:
    features = FeatureGates()
    read_configuration, source = read(json.dumps(configuration()), "profiles.yaml", features)
    check(read_configuration, features, source)
    resolved = resolve(read_configuration, extension_points(available()), features, source)
    return {profile.scheduler_name: profile for profile in resolved}


class _Bench:
    """A scheduler with one profile, beside a cluster."""

    def __init__(self, profile: str, objects: Sequence[Object]) -> None:
        self._timeline = Timeline(_START, "")
        self.api_server = SimulatedApiServer(self._timeline, bind_takes=1)
        self.nodes = Cache()
        handle = Handle(self._timeline, self.api_server, self.nodes.nodes)
        self.claims = handle.listers
        built = make_profile(handle, _profiles()[profile], available())
        self.records: dict[str, AttemptRecord] = {}
        self.order: list[str] = []
        self.explanations: dict[str, Explanation] = {}
        self.scheduler = Scheduler(
            [(built, handle)],
            self.nodes,
            tracer=None,
            on_attempt=self._ended,
            explain=lambda pod, explanation: self.explanations.setdefault(pod.uid, explanation),
            log=lambda _: None,
        )
        self.api_server.watch.watcher = self.scheduler
        for obj in objects:
            self.create(obj)
        self.settle()

    def create(self, obj: Object) -> None:
        """Somebody creates an object; a Pod's key is its uid."""
        stored = as_stored(obj) if obj["kind"] == "Pod" else obj
        decoded = decode(_with_identity(stored))
        if isinstance(decoded, Pod):
            self.api_server.create_pod(decoded, _PLAN)
        elif isinstance(decoded, Node):
            self.api_server.add_node(decoded)
        else:
            self.api_server.objects.put(decoded)

    def tell(self, old: Object | None, new: Object | None) -> None:
        """The watch shows an object as it was and as it is."""
        self.api_server.watch.tell(*(each and decode(_with_identity(each)) for each in (old, new)))
        self.settle()

    def settle(self) -> None:
        """What is under way ends."""
        until = self._timeline.now() + _ATTEMPT
        while (due := self._timeline.next_time()) is not None and due <= until:
            self._timeline.step()

    def attempt(self) -> str:
        """Attempts the next Pod; the node that was chosen for it, empty when none was."""
        chosen = ""

        async def schedule() -> None:
            nonlocal chosen
            before = {uid for uid in self.api_server.pods if self.nodes.is_assumed(uid)}
            await self.scheduler.schedule_one()
            for uid, pod in self.api_server.pods.items():
                if uid not in before and self.nodes.is_assumed(uid):
                    chosen = getattr(self.nodes.pod(pod.uid), "node_name", "")

        self._timeline.spawn(schedule())
        self.settle()
        return chosen

    def _ended(self, record: AttemptRecord) -> None:
        self.records.setdefault(record.pod.uid, record)
        self.order.append(record.pod.name)


def ask(case: Case, recorded: Answers) -> Answers:
    """Our answers; none follow one that had other Pods terminate than kube-scheduler's."""
    if recorded.order:
        return _ask_for_the_order(case)
    objects = list(case.objects)
    bench = _Bench(case.profile, objects)
    if case.change is not None:
        answer = _schedule(bench, case.pods[0])
        return Answers(case.name, case.digest, (answer._replace(requeued_by=_requeued(bench, case, case.change)),))
    steps: list[Answer] = []
    for pod, theirs in zip(case.pods, recorded.steps, strict=True):
        ours = _schedule(bench, pod)
        steps.append(ours)
        if (ours.nominated, ours.victims) != (theirs.nominated, theirs.victims):
            break
        if theirs.nominated:
            continue
        if theirs.outcome == "bound":
            objects = [*map(partial(_used, pod=pod, answer=theirs), objects), _bound(pod, theirs.node)]
        if (ours.outcome, ours.node, ours.devices) != (theirs.outcome, theirs.node, theirs.devices):
            bench = _Bench(case.profile, objects)
        elif theirs.outcome != "bound":
            bench.api_server.delete(_key(pod))
            bench.settle()
    return Answers(case.name, case.digest, tuple(steps))


def _bound(pod: Object, node: str) -> Object:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def _used(obj: Object, pod: Object, answer: Answer) -> Object:
    if obj["kind"] != "ResourceClaim" or obj["metadata"]["name"] not in answer.devices:
        return obj
    return allocated(obj, pod, answer.devices[obj["metadata"]["name"]])


def _requeued(bench: _Bench, case: Case, change: Change) -> str:
    before = dict(bench.scheduler.queue.counts.incoming)
    name = change.obj["metadata"]["name"]
    found = (each for each in (*case.objects, *case.pods) if each["kind"] == change.obj["kind"])
    old = next((each for each in found if each["metadata"]["name"] == name), None)
    new = {"create": change.obj, "patch": merged(old, dict(change.patch)), "delete": None}[change.verb]
    bench.tell(old, new)
    return " ".join(
        event
        for (_, event), number in bench.scheduler.queue.counts.incoming.items()
        if number > before.get((_, event), 0)
    )


def _ask_for_the_order(case: Case) -> Answers:
    bench = _Bench(case.profile, [*case.objects, *case.pods])
    for _ in case.pods:
        bench.attempt()
    return Answers(case.name, case.digest, (), tuple(bench.order))


def _schedule(bench: _Bench, pod: Object) -> Answer:
    name, key = pod["metadata"]["name"], _key(pod)
    bench.create(pod)
    bench.settle()
    waiting = bench.scheduler.queue.get(key)
    if waiting is not None and waiting.gated:
        return Answer(name, "gated", message=waiting.message)
    terminating = {each.uid for each in bench.api_server.pods.values() if each.deletion_timestamp is not None}
    chosen = bench.attempt()
    record, told = bench.records[key], bench.explanations[key]
    if chosen:
        several = len(told.feasible) > 1
        return Answer(
            name,
            "bound" if record.result == "Success" else "chosen",
            chosen,
            fitting=len(told.feasible),
            scores=told.scores if several else {},
            totals=told.totals if several else {},
            devices=_devices(bench, pod),
        )
    if record.result == "Error":
        return Answer(name, "error", message=record.message)
    made_room = sorted(
        each.name
        for each in bench.api_server.pods.values()
        if each.deletion_timestamp is not None and each.uid not in terminating
    )
    nominated = bench.api_server.pods[key].nominated_node_name
    return Answer(name, "unschedulable", message=record.message, nominated=nominated, victims=tuple(made_room))


def _devices(bench: _Bench, pod: Object) -> dict[str, tuple[str, ...]]:
    found = {}
    for reference in pod["spec"].get("resourceClaims", ()):
        name = reference["resourceClaimName"]
        claim = bench.claims.get(ResourceClaim, f"{pod['metadata']['namespace']}/{name}")
        if claim is not None and claim.allocation is not None:
            found[name] = tuple(sorted(map(told, claim.allocation.json["devices"]["results"])))
    return found


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _with_identity(obj: Object) -> Object:
    metadata = obj["metadata"]
    uid = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
    return {**obj, "metadata": {"uid": uid, **metadata}}
