"""All cases, the same in every run."""

from random import Random

from .case import Case, Object
from .changing import Changing
from .families import FAMILIES
from .hints import scenarios


def case(family: str, number: int) -> Case:
    """One case of a family."""
    name = f"{family}/{number:02}"
    if family == "hints":
        waits = scenarios()[number]
        return Case(name, waits.profile, tuple(waits.objects), (_scheduled_by(waits.profile, waits.pod),), waits.change)
    if family == "changing":
        cluster = Changing(Random(name))
        waiting = tuple(_scheduled_by(cluster.profile, pod) for pod in cluster.pods)
        return Case(name, cluster.profile, tuple(cluster.objects), waiting, between=tuple(cluster.between))
    make = FAMILIES[family].make
    assert make is not None
    profile, objects, pods = make(Random(name))
    return Case(name, profile, tuple(objects), tuple(_scheduled_by(profile, pod) for pod in pods))


def cases() -> list[Case]:
    """Those of every family."""
    return [each for family in FAMILIES for each in of_family(family)]


def of_family(family: str) -> list[Case]:
    """Those of one family."""
    return [case(family, number) for number in range(FAMILIES[family].cases)]


def _scheduled_by(profile: str, pod: Object) -> Object:
    return {**pod, "spec": {**pod["spec"], "schedulerName": profile}}
