"""Feature gates on the command line, with the words of component-base."""

import pytest
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.configuration.features import KNOWN, parse_feature_gates

DEPENDS = "but depends on features that are disabled"
CANNOT_SET = "cannot set feature gate"
LOCKED = "to false, feature is locked to true"
NEW = ["SchedulerTracing", "AsyncTraceContextPropagation", "SchedulerPreEnqueuePodStatus", "SchedulerAsyncAPICalls"]


@pytest.mark.parametrize("gate", NEW)
def test_what_is_new_is_off_unless_it_is_switched_on(gate: str) -> None:
    switched = parse_feature_gates([f"SchedulerAsyncAPICalls=true,kube:{gate}=true"])

    assert (parse_feature_gates([]).enabled(gate), switched.enabled(gate)) == (False, True)


def test_the_last_of_several_flags_counts() -> None:
    gates = parse_feature_gates(["SchedulerTracing=true, SchedulerAsyncPreemption=F", "SchedulerTracing=0"])

    assert (gates.enabled("SchedulerTracing"), gates.enabled("SchedulerAsyncPreemption")) == (False, False)


def test_all_of_a_stage_are_switched_but_those_that_are_set_themselves() -> None:
    gates = parse_feature_gates(["AllAlpha=true,SchedulerTracing=false,AllBeta=true"])

    on = {name for name in KNOWN if gates.enabled(name)}
    assert on == set(KNOWN) - {"SchedulerTracing"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("SchedulerTracing", "missing bool value for SchedulerTracing"),
        (
            "SchedulerTracing=maybe",
            'invalid value of SchedulerTracing=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("kubelet:SchedulerTracing=true", "component not registered: kubelet"),
        (
            "SchedulerPreEnqueuePodStatus=true",
            f"SchedulerPreEnqueuePodStatus is enabled, {DEPENDS}: [SchedulerAsyncAPICalls]",
        ),
        (
            "NodeDeclaredFeatures=false,DynamicResourceAllocation=false",
            f"[{CANNOT_SET} NodeDeclaredFeatures {LOCKED}, {CANNOT_SET} DynamicResourceAllocation {LOCKED}]",
        ),
    ],
)
def test_says_what_is_wrong_as_component_base_does(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_feature_gates([text])

    assert refused.value.message == message
