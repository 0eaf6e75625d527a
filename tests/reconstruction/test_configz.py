"""What a kube-scheduler's `/configz` comes to, and for how long it counts."""

import json
from typing import Any

import pytest

from podtrail.reconstruction.configz import KnownConfigurations, configz_generation

SECOND = 1_000_000_000


def page(**fields: Any) -> bytes:
    """As kube-scheduler v1.37.1 answers, shortened."""
    whole = {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "parallelism": 16,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": "/a", "qps": 50},
        "percentageOfNodesToScore": 0,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": []}}}],
        **fields,
    }
    return json.dumps({"componentconfig": whole}).encode()


def test_what_decides_makes_another_generation_and_nothing_else() -> None:
    plain = configz_generation(page())
    assert len(plain) == 12
    assert int(plain, 16) >= 0
    same = [page(clientConnection={"kubeconfig": "/b"}), page(leaderElection={}), page(parallelism=8)]
    assert {configz_generation(each) for each in same} == {plain}
    assert configz_generation(page(percentageOfNodesToScore=5)) != plain
    assert configz_generation(page(profiles=[])) != plain


def test_the_internal_form_of_releases_up_to_1_35_counts_as_well() -> None:
    def internal(**fields: Any) -> bytes:
        whole = {"Parallelism": 16, "ClientConnection": {"QPS": 50}, "PercentageOfNodesToScore": None, "Profiles": []}
        return json.dumps({"componentconfig": whole | fields}).encode()

    plain = configz_generation(internal())
    assert configz_generation(internal(Parallelism=8, ClientConnection={})) == plain
    assert configz_generation(internal(PercentageOfNodesToScore=5)) != plain


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "Expecting value"),
        (b"ok", "Expecting value"),
        (b"\xff", "codec can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        *((each, "it has no `componentconfig`") for each in (b"[]", b"null", b"{}", b'{"componentconfig": 3}')),
        (b'{"componentconfig": {"kind": "Other"}}', "it has no `componentconfig` of kind"),
    ],
)
def test_what_is_no_configz_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        configz_generation(text)


def test_a_configuration_counts_from_when_it_was_read_until_it_was_not_read_again() -> None:
    known = KnownConfigurations()
    for now in (10, 20, 30):
        known.read(page(), now * SECOND, 15 * SECOND)
    generation = configz_generation(page())
    assert [known.at(at * SECOND) for at in (9, 10, 25, 45, 46)] == ["", generation, generation, generation, ""]
    known.read(page(), 60 * SECOND, 15 * SECOND)
    assert [known.at(at * SECOND) for at in (50, 60)] == ["", generation]


def test_another_one_counts_from_when_it_was_read() -> None:
    known = KnownConfigurations()
    known.read(page(), 10 * SECOND, 30 * SECOND)
    known.read(page(profiles=[]), 20 * SECOND, 30 * SECOND)
    before, after = configz_generation(page()), configz_generation(page(profiles=[]))
    assert [known.at(at * SECOND) for at in (19, 21)] == [before, after]


def test_of_configurations_without_end_the_last_are_known() -> None:
    known = KnownConfigurations()
    for number in range(1000):
        known.read(page(percentageOfNodesToScore=number), number * SECOND, 10 * SECOND)
    assert known.at(900 * SECOND) == ""
    assert known.at(990 * SECOND) == configz_generation(page(percentageOfNodesToScore=990))
