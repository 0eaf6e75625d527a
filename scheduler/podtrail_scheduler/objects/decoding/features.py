"""Which features of a node a Pod needs (KEP-5328), as kube-scheduler 1.37 finds out from its specification."""

from .reading import Json

NONE: frozenset[str] = frozenset()


def required_features(spec: Json) -> frozenset[str]:
    """The names as nodes declare them in `status.declaredFeatures`."""
    found = set()
    if spec.get("hostNetwork") is True and spec.get("hostUsers") is False:
        found.add("UserNamespacesHostNetworkSupport")
    for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        rules = each.get("restartPolicyRules") or ()
        if any(rule.get("action") == "RestartAllContainers" for rule in rules):
            found.add("RestartAllContainersOnContainerExits")
        if any(mount.get("bindMountOptions") for mount in each.get("volumeMounts") or ()):
            found.add("VolumeBindMountOptions")
    return frozenset(found) if found else NONE
