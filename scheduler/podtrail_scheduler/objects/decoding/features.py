"""Which features of a node a Pod needs (KEP-5328), as kube-scheduler 1.37 finds out from its specification."""

from .reading import Json, items, text

NONE: frozenset[str] = frozenset()


def required_features(spec: Json) -> frozenset[str]:
    """The names as nodes declare them in `status.declaredFeatures`."""
    found = set()
    if spec.get("hostNetwork") is True and spec.get("hostUsers") is False:
        found.add("UserNamespacesHostNetworkSupport")
    for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if "RestartAllContainers" in items(each, "restartPolicyRules", _action, "spec.containers"):
            found.add("RestartAllContainersOnContainerExits")
        if any(items(each, "volumeMounts", _has_bind_options, "spec.containers")):
            found.add("VolumeBindMountOptions")
    return frozenset(found) if found else NONE


def _action(rule: Json) -> str:
    return text(rule, "action")


def _has_bind_options(mount: Json) -> bool:
    return bool(mount.get("bindMountOptions"))
