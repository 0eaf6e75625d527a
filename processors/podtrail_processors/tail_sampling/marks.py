"""Which policy decided, written on the instrumentation scope of kept spans: the Collector's gate `recordpolicy`."""

from collections.abc import Collection
from functools import lru_cache

from podtrail.otlp import Group, set_scope_attributes

_GATE = "processor.tailsamplingprocessor.recordpolicy"


def records_policy(gates: Collection[str]) -> bool:
    """Say whether the gate is on, under its full id or its last part."""
    return _GATE in gates or _GATE.rpartition(".")[2] in gates


def marked(group: Group, policy: str, composite_policy: str | None = None, *, cached: bool = False) -> Group:
    """Return a group whose scope names the policy and the part of a composite that said yes, if one did.

    `cached`: these spans follow a remembered decision.
    """
    return group._replace(scope=_marked(group.scope, policy, composite_policy, cached))


@lru_cache(maxsize=1024)
def _marked(scope: bytes, policy: str, composite_policy: str | None, cached: bool) -> bytes:
    attributes: dict[str, str | bool] = {"tailsampling.policy": policy} if policy else {}
    if composite_policy is not None:
        attributes["tailsampling.composite_policy"] = composite_policy
    if cached:
        attributes["tailsampling.cached_decision"] = True
    return set_scope_attributes(scope, {**attributes})
