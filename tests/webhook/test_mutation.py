"""What becomes of a Pod or a template, for each context and each annotation that may be there."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from podtrail_webhook.mutation import AnnotationPolicy, InjectionResult, mutate
from podtrail_webhook.review import RefusedReview, allow, read_review

from tests.webhook.conftest import TRACEPARENT, pod, review

KEY, STATE = "tracing.k8s.io/traceparent", "tracing.k8s.io/tracestate"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FORGED = {
    "nonsense": "hello",
    "empty": "",
    "upper case": OTHER.upper(),
    "no trace id": f"00-{'0' * 32}-b7ad6b7169203331-01",
    "no span id": f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    "a version to come": f"01{OTHER[2:]}",
    "more behind it": f"{OTHER}-what-the-future-holds",
    "a line's end": f"{OTHER}\n",
    "overlong": "00-" + "a" * 200_000,
    "other digits": OTHER.replace("0", "\u0660"),
}
EVERYBODY = AnnotationPolicy()
DEVELOPERS = AnnotationPolicy(trusted_groups=["developers"])
NOBODY = AnnotationPolicy(trusted_users=["root"])


def mutated(
    obj: dict[str, Any],
    traceparent: str | None = TRACEPARENT,
    tracestate: str | None = None,
    policy: AnnotationPolicy = EVERYBODY,
    **fields: Any,
) -> tuple[str, dict[str, Any], list[str]]:
    """The result, the object as the patch makes it, the warnings."""
    mutation = mutate(read_review(json.dumps(review(obj, **fields)).encode()), traceparent, tracestate, policy)
    return mutation.result, patched(obj, list(mutation.patch)), list(mutation.warnings)


def patched(document: Any, patch: list[dict[str, Any]]) -> Any:
    """Applies add and remove of RFC 6902, strictly: what holds the value has to be there."""
    document = json.loads(json.dumps(document))
    for operation in patch:
        *way, last = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].removeprefix("/").split("/")
        ]
        holder = document
        for step in way:
            holder = holder[step]
        if operation["op"] == "remove":
            del holder[last]
        else:
            assert operation["op"] == "add"
            holder[last] = operation["value"]
    return document


def annotations(obj: Mapping[str, Any]) -> dict[str, str]:
    return dict(obj["metadata"].get("annotations") or {})


@pytest.mark.parametrize("before", [None, {}, {"a/b~c": "x"}], ids=["none", "empty", "others"])
def test_a_pod_gets_the_context_of_its_request(before: dict[str, str] | None) -> None:
    result, after, warnings = mutated(pod(annotations=before), TRACEPARENT, "vendor=1")
    assert result == "success"
    assert annotations(after) == (before or {}) | {KEY: TRACEPARENT, STATE: "vendor=1"}
    assert warnings == []


@pytest.mark.parametrize("metadata", [{}, {"name": "x", "annotations": None}])
def test_what_is_null_or_missing_is_made(metadata: dict[str, Any]) -> None:
    _, after, _ = mutated({**pod(), "metadata": metadata})
    assert annotations(after) == {KEY: TRACEPARENT}


def test_a_pod_without_metadata_gets_it() -> None:
    obj = pod()
    del obj["metadata"]
    assert annotations(mutated(obj)[1]) == {KEY: TRACEPARENT}


TEMPLATES = {
    ("", "ReplicationController"): "spec.template",
    ("apps", "DaemonSet"): "spec.template",
    ("apps", "Deployment"): "spec.template",
    ("apps", "ReplicaSet"): "spec.template",
    ("apps", "StatefulSet"): "spec.template",
    ("batch", "Job"): "spec.template",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template",
}


def workload(kind: str, way: str, template: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    obj: Any = template
    for step in reversed(way.split(".")):
        obj = {step: obj}
    return {"kind": kind, "metadata": {"name": "x", **metadata}, **obj}


@pytest.mark.parametrize(("group", "kind"), TEMPLATES)
def test_the_template_of_a_workload_gets_the_context_and_nothing_else_changes(group: str, kind: str) -> None:
    way = TEMPLATES[group, kind]
    template: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    result, after, _ = mutated(workload(kind, way, template), group=group)
    assert result == "success"
    template["metadata"]["annotations"] = {KEY: TRACEPARENT}
    assert after == workload(kind, way, template)


def test_a_template_that_a_controller_owns_stays_as_the_controller_knows_it() -> None:
    template: dict[str, Any] = {"metadata": {}, "spec": {}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    obj = workload("ReplicaSet", "spec.template", template, ownerReferences=[owner])
    assert mutated(obj, group="apps") == ("controlled", obj, [])
    obj = workload("ReplicaSet", "spec.template", template, ownerReferences=[{**owner, "controller": False}])
    assert mutated(obj, group="apps")[0] == "success"


def test_a_pod_that_a_controller_owns_gets_the_context_of_its_own_creation() -> None:
    obj = pod()
    obj["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "controller": True}]
    assert mutated(obj)[0] == "success"


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
def test_only_creations_are_touched(operation: str) -> None:
    obj = pod()
    assert mutated(obj, operation=operation) == ("not_concerned", obj, [])
    assert mutated(obj, operation=operation, object=None)[0] == "not_concerned"


@pytest.mark.parametrize(
    ("group", "kind", "subresource"), [("", "Binding", ""), ("apps", "Pod", ""), ("", "Pod", "eviction")]
)
def test_what_has_no_pods_is_let_through(group: str, kind: str, subresource: str) -> None:
    obj = {**pod(), "kind": kind}
    assert mutated(obj, group=group, subResource=subresource) == ("not_concerned", obj, [])


@pytest.mark.parametrize(
    ("traceparent", "result"),
    [
        (None, "no_context"),
        (TRACEPARENT[:-1] + "0", "not_sampled"),
        *((text, "invalid_context") for text in FORGED.values()),
    ],
    ids=["none", "unsampled", *FORGED],
)
def test_without_a_recorded_context_nothing_is_written(traceparent: str | None, result: str) -> None:
    for before in (None, {"a": "b"}, {KEY: OTHER}):
        found, after, warnings = mutated(pod(annotations=before), traceparent, "vendor=1")
        assert found == ("unchanged" if before == {KEY: OTHER} else result)
        assert after == pod(annotations=before)
        assert warnings == []


@pytest.mark.parametrize("state", ["vendor=1", ""])
@pytest.mark.parametrize("policy", [EVERYBODY, DEVELOPERS], ids=["everybody", "developers"])
def test_a_valid_annotation_of_who_may_write_it_is_never_overwritten(policy: AnnotationPolicy, state: str) -> None:
    before = {KEY: OTHER, STATE: state, "a": "b"}
    assert mutated(pod(annotations=before), TRACEPARENT, "vendor=2", policy) == (
        "unchanged",
        pod(annotations=before),
        [],
    )


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_an_invalid_annotation_gives_way_and_its_writer_is_told(value: str) -> None:
    before = {KEY: value, STATE: "vendor=9", "a": "b"}
    result, after, (warning,) = mutated(pod(annotations=before))
    assert (result, annotations(after)) == ("replaced", {KEY: TRACEPARENT, "a": "b"})
    assert warning == f"{KEY} was replaced: it is no traceparent of W3C Trace Context, version 00"
    result, after, (warning,) = mutated(pod(annotations=before), None)
    assert (result, annotations(after)) == ("removed", {"a": "b"})
    assert warning == f"{KEY} was removed: it is no traceparent of W3C Trace Context, version 00"


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_an_invalid_annotation_stays_where_it_is_to(value: str) -> None:
    before = pod(annotations={KEY: value})
    assert mutated(before, policy=AnnotationPolicy(keep_invalid=True)) == ("invalid_kept", before, [])


@pytest.mark.parametrize("state", ["x" * 513, "no state", "a=1," * 300], ids=["long", "wrong", "many"])
def test_a_tracestate_that_nobody_would_read_is_taken_away(state: str) -> None:
    result, after, _ = mutated(pod(annotations={KEY: OTHER, STATE: state}))
    assert (result, annotations(after)) == ("unchanged", {KEY: OTHER})


def test_a_tracestate_of_the_request_that_is_none_is_not_written() -> None:
    _, after, _ = mutated(pod(annotations={STATE: "left=1"}), TRACEPARENT, "x" * 600)
    assert annotations(after) == {KEY: TRACEPARENT}


def test_an_annotation_of_who_may_not_write_it_gives_way() -> None:
    before = pod(annotations={KEY: OTHER, STATE: "vendor=9"})
    result, after, (warning,) = mutated(before, policy=NOBODY)
    assert (result, annotations(after)) == ("replaced", {KEY: TRACEPARENT})
    assert warning == f"{KEY} was replaced: 'alice' may not write it"
    result, after, (warning,) = mutated(before, None, policy=NOBODY)
    assert (result, annotations(after)) == ("removed", {})
    assert warning == f"{KEY} was removed: 'alice' may not write it"


@pytest.mark.parametrize(
    "user",
    [
        {"username": "root"},
        {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        {"username": "system:kube-controller-manager"},
    ],
    ids=lambda user: user["username"],
)
def test_annotations_of_trusted_users_and_of_kubernetes_own_controllers_count(user: dict[str, str]) -> None:
    before = pod(annotations={KEY: OTHER})
    assert mutated(before, policy=NOBODY, userInfo=user) == ("unchanged", before, [])


@pytest.mark.parametrize("username", ["system:serviceaccount:default:replicaset-controller", "root ", "ROOT", ""])
def test_names_are_compared_whole(username: str) -> None:
    before = pod(annotations={KEY: OTHER})
    assert mutated(before, policy=NOBODY, userInfo={"username": username})[0] == "replaced"


@pytest.mark.parametrize("policy", [EVERYBODY, NOBODY, AnnotationPolicy(keep_invalid=True)])
@pytest.mark.parametrize("before", [None, {KEY: "forged"}, {KEY: OTHER}, {KEY: OTHER, STATE: "x" * 600}])
def test_asked_again_for_the_same_request_it_changes_nothing_more(
    before: dict[str, str] | None, policy: AnnotationPolicy
) -> None:
    _, once, _ = mutated(pod(annotations=before), policy=policy)
    again = TRACEPARENT[:36] + "1" * 16 + TRACEPARENT[52:]  # the API server's next call is another span of the trace
    assert mutated(once, again, policy=policy)[1] == once


@pytest.mark.parametrize(
    "obj",
    [
        {**pod(), "metadata": []},
        {**pod(), "metadata": {"annotations": ["a"]}},
        {**pod(), "metadata": {"annotations": {"a": 1}}},
        {**pod(), "metadata": "x"},
    ],
)
def test_an_object_of_another_shape_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(RefusedReview, match=r"request\.object/metadata"):
        mutated(obj)


def test_a_name_that_is_told_is_one_line_that_a_terminal_may_show() -> None:
    with pytest.raises(RefusedReview) as refused:
        mutated({**pod(), "metadata": {"annotations": {"a\n2026 INFO all is well\x1b[2J\ud800": 1}}})
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("spec", [[], {"template": 1}, {"template": {"metadata": 1}}])
def test_a_workload_of_another_shape_is_refused(spec: Any) -> None:
    with pytest.raises(RefusedReview, match=r"request\.object/spec"):
        mutated({"kind": "Deployment", "metadata": {}, "spec": spec}, group="apps")


def test_the_answer_allows_and_has_the_patch_in_base64() -> None:
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {KEY: TRACEPARENT}}]
    answer = json.loads(allow("705ab4f5", patch, ["w" * 300]))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    assert json.loads(base64.b64decode(answer["response"].pop("patch"))) == patch
    assert answer["response"] == {
        "uid": "705ab4f5",
        "allowed": True,
        "patchType": "JSONPatch",
        "warnings": ["w" * 256],
    }


def test_without_a_patch_there_is_no_patch_type() -> None:
    assert json.loads(allow("705ab4f5"))["response"] == {"uid": "705ab4f5", "allowed": True}


def test_results_are_words_of_metrics() -> None:
    assert all(result.islower() for result in InjectionResult)
