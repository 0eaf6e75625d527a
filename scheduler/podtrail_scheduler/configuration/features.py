"""Feature gates: those that this scheduler looks at, set and checked as component-base does it.

The gates of KEP-5927, KEP-5915 and KEP-5501 are not in any release of Kubernetes; the others have the stage and the
default of v1.37. A gate that kube-scheduler has but that nothing here looks at is refused as unknown.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .errors import ConfigurationError, ConfigurationProblem

ALPHA, BETA, GA = "ALPHA", "BETA", "GA"
ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"
COMPONENT = "kube"


@dataclass(frozen=True, slots=True)
class Feature:
    """A gate: its stage, whether it is on unless set, whether it can be set at all, and the gates that it needs."""

    name: str
    stage: str
    default: bool
    description: str
    locked: bool = False
    needs: tuple[str, ...] = ()


SCHEDULER_TRACING = "SchedulerTracing"
ASYNC_TRACE_CONTEXT_PROPAGATION = "AsyncTraceContextPropagation"
SCHEDULER_PRE_ENQUEUE_POD_STATUS = "SchedulerPreEnqueuePodStatus"
SCHEDULER_ASYNC_API_CALLS = "SchedulerAsyncAPICalls"
SCHEDULER_ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
SCHEDULER_POP_FROM_BACKOFF_Q = "SchedulerPopFromBackoffQ"
NOMINATED_NODE_NAME_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
DRA_SCHEDULER_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
DRA_DEVICE_BINDING_CONDITIONS = "DRADeviceBindingConditions"
DRA_RESOURCE_CLAIM_DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
DYNAMIC_RESOURCE_ALLOCATION = "DynamicResourceAllocation"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
STORAGE_CAPACITY_SCORING = "StorageCapacityScoring"

KNOWN: Mapping[str, Feature] = {
    each.name: each
    for each in (
        Feature(ALL_ALPHA, ALPHA, False, "All alpha gates that are not set themselves."),
        Feature(ALL_BETA, BETA, False, "All beta gates that are not set themselves."),
        Feature(SCHEDULER_TRACING, ALPHA, False, "Traces of scheduling attempts (KEP-5927)."),
        Feature(ASYNC_TRACE_CONTEXT_PROPAGATION, ALPHA, False, "Trace context in annotations, as links (KEP-5915)."),
        Feature(
            SCHEDULER_PRE_ENQUEUE_POD_STATUS,
            BETA,
            False,
            "PreEnqueue rejections in the Pod's status and as Events (KEP-5501).",
            needs=(SCHEDULER_ASYNC_API_CALLS,),
        ),
        Feature(SCHEDULER_ASYNC_API_CALLS, BETA, False, "API calls do not hold up the scheduling cycle."),
        Feature(SCHEDULER_ASYNC_PREEMPTION, BETA, True, "Victims are deleted in the background."),
        Feature(SCHEDULER_POP_FROM_BACKOFF_Q, BETA, True, "Takes a Pod in back-off when the active queue is empty."),
        Feature(NOMINATED_NODE_NAME_FOR_EXPECTATION, BETA, True, "`nominatedNodeName` before long binding cycles."),
        Feature(DYNAMIC_RESOURCE_ALLOCATION, GA, True, "The plugin DynamicResources.", locked=True),
        Feature(NODE_DECLARED_FEATURES, GA, True, "The plugin NodeDeclaredFeatures.", locked=True),
        Feature(DRA_RESOURCE_CLAIM_DEVICE_STATUS, GA, True, "Status of devices in ResourceClaims.", locked=True),
        Feature(
            DRA_SCHEDULER_FILTER_TIMEOUT,
            BETA,
            True,
            "`filterTimeout` of DynamicResources.",
            needs=(DYNAMIC_RESOURCE_ALLOCATION,),
        ),
        Feature(
            DRA_DEVICE_BINDING_CONDITIONS,
            BETA,
            True,
            "`bindingTimeout` of DynamicResources.",
            needs=(DYNAMIC_RESOURCE_ALLOCATION, DRA_RESOURCE_CLAIM_DEVICE_STATUS),
        ),
        Feature(STORAGE_CAPACITY_SCORING, BETA, True, "VolumeBinding scores nodes by their storage."),
    )
}

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Which gates are on; `given` are those that were set."""

    given: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """Whether the gate is on."""
        feature = KNOWN[name]
        if name in self.given:
            return self.given[name]
        if feature.stage == ALPHA and name != ALL_ALPHA and ALL_ALPHA in self.given:
            return self.given[ALL_ALPHA]
        if feature.stage == BETA and name != ALL_BETA and ALL_BETA in self.given:
            return self.given[ALL_BETA]
        return feature.default


def parse_feature_gates(texts: Iterable[str]) -> FeatureGates:
    """The gates of `--feature-gates`, each text like `A=true,kube:B=false`.

    Raises:
        ConfigurationError: a gate is unknown or locked, or what it needs is off; in the words of component-base.
    """
    given: dict[str, bool] = {}
    for pair in (pair for text in texts for pair in text.split(",") if pair):
        key, equals, value = (part.strip() for part in pair.partition("="))
        component, colon, name = key.partition(":")
        if not colon:
            component, name = COMPONENT, key
        if component != COMPONENT:
            _refuse([f"component not registered: {component}"])
        if not equals:
            _refuse([f"missing bool value for {name}"])
        if value not in _TRUE | _FALSE:
            wrong = f"strconv.ParseBool: parsing {json.dumps(value)}: invalid syntax"
            _refuse([f"invalid value of {name}={value}, err: {wrong}"], "true or false")
        given[name] = value in _TRUE
    gates = FeatureGates(given)
    if unknown := [name for name in given if name not in KNOWN]:
        _refuse([f"unrecognized feature gate: {unknown[0]}"], f"known here: {', '.join(KNOWN)}")
    if problems := _locked(given) or _unmet(gates):
        _refuse(problems)
    return gates


def _locked(given: Mapping[str, bool]) -> list[str]:
    return [
        f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
        for name, value in given.items()
        if KNOWN[name].locked and KNOWN[name].default != value
    ]


def _unmet(gates: FeatureGates) -> list[str]:
    problems = []
    for feature in KNOWN.values():
        off = [name for name in feature.needs if not gates.enabled(name)]
        if off and gates.enabled(feature.name):
            disabled = " ".join(off)
            problems.append(f"{feature.name} is enabled, but depends on features that are disabled: [{disabled}]")
    return problems


def _refuse(problems: list[str], remedy: str = "") -> None:
    message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    raise ConfigurationError(
        message, [ConfigurationProblem(each, remedy=remedy) for each in problems], "--feature-gates"
    )
