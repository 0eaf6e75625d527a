"""What our scheduler does with the Pods of a case: the whole of it, on the simulated API server, in virtual time.

Where nodes have equal scores kube-scheduler draws one, and so do we: each Pod meets the cluster as kube-scheduler left
it, so that a different draw is no difference afterwards.
"""

from functools import partial

from podtrail_scheduler.objects.resource import ResourceClaim

from .answers import Answer, Answers
from .bench import Bench
from .case import Case, Change, Object, identity, merged
from .claims import EXTENDED, MAPPED, allocated, made_for, told


def ask(case: Case, recorded: Answers) -> Answers:
    """Our answers; none follow one that had other Pods terminate than kube-scheduler's."""
    if recorded.order:
        return _ask_for_the_order(case)
    objects = list(case.objects)
    bench = Bench(case.profile, objects)
    if case.change is not None:
        answer = schedule(bench, case.pods[0])
        return Answers(case.name, case.digest, (answer._replace(requeued_by=_requeued(bench, case, case.change)),))
    steps: list[Answer] = []
    for (pod, changes), theirs in zip(case.rounds, recorded.steps, strict=True):
        for change in changes:
            objects = happen(bench, objects, change)
        ours = schedule(bench, pod)
        steps.append(ours)
        if (ours.nominated, ours.victims) != (theirs.nominated, theirs.victims):
            break
        if theirs.nominated:
            continue
        if theirs.outcome == "bound":
            objects = after(objects, pod, theirs)
        if (ours.outcome, ours.node, ours.devices) == (theirs.outcome, theirs.node, theirs.devices):
            if theirs.outcome != "bound":
                withdraw(bench, pod)
        elif ours.outcome == theirs.outcome == "bound" and not (ours.devices or theirs.devices or _has_volumes(pod)):
            bench.tell(bound(pod, ours.node), None)
            bench.tell(None, bound(pod, theirs.node))
        else:
            bench = Bench(case.profile, objects)
    return Answers(case.name, case.digest, tuple(steps))


def withdraw(bench: Bench, pod: Object) -> None:
    """Somebody deletes a Pod that was not bound."""
    bench.api_server.delete(_key(pod))
    bench.settle()


def happen(bench: Bench, objects: list[Object], change: Change) -> list[Object]:
    """Has a change happen to the cluster; its objects afterwards."""
    what = identity(change.obj)
    old = next((each for each in objects if identity(each) == what), None)
    if old is None and change.verb != "create":
        return objects
    new = {"create": change.obj, "patch": merged(old, dict(change.patch)), "delete": None}[change.verb]
    bench.tell(old, new)
    now = [each if identity(each) != what else new for each in objects]
    return [each for each in (now if old is not None else [*now, new]) if each is not None]


def bound(pod: Object, node: str) -> Object:
    """The Pod when it is on that node."""
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def after(objects: list[Object], pod: Object, answer: Answer) -> list[Object]:
    """The cluster when the Pod is on its node and has its devices."""
    made = [made_for(pod, answer.devices[EXTENDED])] if EXTENDED in answer.devices else []
    return [*map(partial(_used, pod=pod, answer=answer), objects), bound(pod, answer.node), *made]


def _has_volumes(pod: Object) -> bool:
    return "volumes" in pod["spec"]


def _used(obj: Object, pod: Object, answer: Answer) -> Object:
    if obj["kind"] != "ResourceClaim" or obj["metadata"]["name"] not in answer.devices:
        return obj
    return allocated(obj, pod, answer.devices[obj["metadata"]["name"]])


def _requeued(bench: Bench, case: Case, change: Change) -> str:
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
    bench = Bench(case.profile, [*case.objects, *case.pods])
    for _ in case.pods:
        bench.attempt()
    return Answers(case.name, case.digest, (), tuple(bench.order))


def schedule(bench: Bench, pod: Object) -> Answer:
    """What comes of the Pod."""
    name, key = pod["metadata"]["name"], _key(pod)
    bench.create(pod)
    bench.settle()
    waiting = bench.scheduler.queue.get(key)
    if waiting is not None and waiting.gated:
        return Answer(name, "gated", message=waiting.message)
    terminating = {each.uid for each in bench.api_server.pods.values() if each.deletion_timestamp is not None}
    chosen = bench.attempt()
    record, explained = bench.records[key], bench.explanations[key]
    if chosen:
        several = len(explained.feasible) > 1
        return Answer(
            name,
            "bound" if record.result == "Success" else "chosen",
            chosen,
            fitting=len(explained.feasible),
            scores=explained.scores if several else {},
            totals=explained.totals if several else {},
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


def _devices(bench: Bench, pod: Object) -> dict[str, tuple[str, ...]]:
    found = {}
    for reference in pod["spec"].get("resourceClaims", ()):
        name = reference["resourceClaimName"]
        claim = bench.claims.get(ResourceClaim, f"{pod['metadata']['namespace']}/{name}")
        if claim is not None and claim.allocation is not None:
            found[name] = tuple(sorted(map(told, claim.allocation.json["devices"]["results"])))
    extended = bench.api_server.pods[_key(pod)].extended_claim
    if extended is not None:
        claim = bench.claims.get(ResourceClaim, f"{pod['metadata']['namespace']}/{extended.name}")
        assert claim is not None
        assert claim.allocation is not None
        found[EXTENDED] = tuple(sorted(map(told, claim.allocation.json["devices"]["results"])))
        found[MAPPED] = tuple(map(" ".join, extended.mappings))
    return found


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
