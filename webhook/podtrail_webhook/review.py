"""AdmissionReview (admission.k8s.io/v1): what an API server asks, and what it is answered."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

API_VERSION: Final = "admission.k8s.io/v1"
_LONGEST_UID: Final = 256
_LONGEST_WARNING: Final = 256
"""Characters; the API server cuts what is longer."""

PatchOperation = dict[str, Any]


class RefusedReview(Exception):
    """A request that is no AdmissionReview, or can't be served; answered with an HTTP error.

    Attributes:
        status: Of HTTP.
        reason: One word, for metrics.
        message: For people.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class Requester(NamedTuple):
    """Who sent the request that is to be admitted."""

    username: str
    groups: Sequence[str]


class AdmissionRequest(NamedTuple):
    """What of an AdmissionRequest matters here."""

    uid: str
    group: str
    kind: str
    subresource: str
    operation: str
    requester: Requester
    object: Mapping[str, Any]
    """Empty where there is none, as at a deletion."""


def read_review(body: bytes) -> AdmissionRequest:
    """Reads an AdmissionReview.

    Raises:
        RefusedReview: it is none; the text names the field and what would be right.
    """
    try:
        review = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"the body is not JSON: {error}") from error
    review = _mapping(review, "the body")
    version, kind = review.get("apiVersion"), review.get("kind")
    if kind != "AdmissionReview":
        raise _malformed(f"kind is {_shown(kind)}, not AdmissionReview")
    if version != API_VERSION:
        raise RefusedReview(
            400, "version", f"apiVersion is {_shown(version)}, not {API_VERSION}: set admissionReviewVersions to [v1]"
        )
    request = _mapping(review.get("request"), "request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not 0 < len(uid) <= _LONGEST_UID:
        raise _malformed(f"request.uid is {_shown(uid)}, not 1 to {_LONGEST_UID} characters")
    of = _mapping(request.get("kind"), "request.kind")
    user = _mapping(request.get("userInfo") or {}, "request.userInfo")
    groups = user.get("groups") or []
    if not isinstance(groups, list):
        raise _malformed(f"request.userInfo.groups is {_shown(groups)}, not a list")
    return AdmissionRequest(
        uid=uid,
        group=_text(of.get("group"), "request.kind.group"),
        kind=_text(of.get("kind"), "request.kind.kind"),
        subresource=_text(request.get("subResource"), "request.subResource"),
        operation=_text(request.get("operation"), "request.operation"),
        requester=Requester(
            _text(user.get("username"), "request.userInfo.username"),
            [_text(group, "request.userInfo.groups") for group in groups],
        ),
        object=_mapping(request.get("object") or {}, "request.object"),
    )


def allow(uid: str, patch: Sequence[PatchOperation] = (), warnings: Sequence[str] = ()) -> bytes:
    """The answer: admitted, with that JSON Patch (RFC 6902) if there is one."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if warnings:
        response["warnings"] = [text[:_LONGEST_WARNING] for text in warnings]
    return json.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}).encode()


def refusal(refused: RefusedReview) -> bytes:
    """The body of an HTTP error: a Status, whose message API servers write into their log."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "message": refused.message,
            "code": refused.status,
        }
    ).encode()


def _malformed(message: str) -> RefusedReview:
    return RefusedReview(400, "malformed", message)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _malformed(f"{name} is {_shown(value)}, not an object")
    return value


def _text(value: Any, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _malformed(f"{name} is {_shown(value)}, not a string")
    return value


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value!r:.80}"
