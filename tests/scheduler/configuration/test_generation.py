"""Generations: a few characters for what a configuration decides; and what a running scheduler can't change."""

import json
from pathlib import Path
from typing import Any

import pytest
from podtrail_scheduler.configuration.claimed_context import claimed_context
from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.generation import generation_of, needs_restart, profiles_need_restart
from podtrail_scheduler.configuration.load import load, read
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.plugins.registry import available, extension_points

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def configuration(text: str) -> KubeSchedulerConfiguration:
    return read(HEAD + text, "scheduler.yaml", FeatureGates())[0]


def profiles(text: str) -> tuple[ProfileConfiguration, ...]:
    given, source = read(HEAD + text, "scheduler.yaml", FeatureGates())
    return resolve(given, extension_points(available()), FeatureGates(), source)


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n",
        "percentageOfNodesToScore: 0\n",
        "profiles:\n- schedulerName: default-scheduler\n",
        "leaderElection: {leaderElect: false}\n",
        "clientConnection: {kubeconfig: /elsewhere, qps: 5}\n",
        "tracing: {endpoint: 'localhost:4317'}\n",
        "enableProfiling: false\nenableContentionProfiling: true\nparallelism: 3\n",
    ],
)
def test_what_decides_nothing_makes_no_other_generation(text: str) -> None:
    assert generation_of(configuration(text)) == generation_of(configuration(""))


def test_what_decides_makes_another() -> None:
    texts = [
        "",
        "percentageOfNodesToScore: 20\n",
        "podMaxBackoffSeconds: 20\n",
        "profiles:\n- schedulerName: other\n",
        "profiles:\n- plugins: {score: {disabled: [{name: ImageLocality}]}}\n",
        "profiles:\n- plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}\n",
        "profiles:\n- pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}]\n",
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n",
    ]
    generations = [generation_of(configuration(text)) for text in texts]
    assert len(set(generations)) == len(texts)
    assert all(len(each) == 12 and int(each, 16) >= 0 for each in generations)


def test_json_and_yaml_are_one_configuration() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = json.dumps({**document, "percentageOfNodesToScore": 20})
    as_json = read(text, "scheduler.json", FeatureGates())[0]
    assert generation_of(as_json) == generation_of(configuration("percentageOfNodesToScore: 20\n"))


class TestClaimedContext:
    def test_comments_above_the_first_field_carry_it(self, tmp_path: Path) -> None:
        path = tmp_path / "scheduler.yaml"
        path.write_text(
            f"---\n# written by an operator\n\n# tracing.k8s.io/traceparent: {TRACEPARENT}\n"
            f"#tracing.k8s.io/tracestate:\tvendor=1\n{HEAD}"
        )
        _, source = load(str(path), FeatureGates())
        assert source.context == {
            "tracing.k8s.io/traceparent": TRACEPARENT,
            "tracing.k8s.io/tracestate": "vendor=1",
        }

    @pytest.mark.parametrize(
        "text",
        [
            f"{HEAD}# tracing.k8s.io/traceparent: {TRACEPARENT}\n",
            f" # tracing.k8s.io/traceparent: {TRACEPARENT}\n",
            "# tracing.k8s.io/traceparent:\n",
            "# tracing.k8s.io/traceparent: two words\n",
            f"# tracing.k8s.io/traceparent: {'0' * 513}\n",
            "#\n" * 5000 + f"# tracing.k8s.io/traceparent: {TRACEPARENT}\n",
            f"# tracing.k8s.io/baggage: {TRACEPARENT}\n",
        ],
        ids=["below", "indented", "empty", "words", "long", "far", "baggage"],
    )
    def test_anything_else_does_not(self, text: str) -> None:
        assert claimed_context(text) == {}

    def test_of_two_the_first_counts(self) -> None:
        line = "# tracing.k8s.io/traceparent: "
        assert claimed_context(f"{line}first\n{line}second\n") == {"tracing.k8s.io/traceparent": "first"}


class TestRestart:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("percentageOfNodesToScore: 20\nparallelism: 3\nenableProfiling: false\n", []),
            ("leaderElection: {leaderElect: false}\n", ["leaderElection"]),
            ("clientConnection: {qps: 5}\ntracing: {}\n", ["clientConnection", "tracing"]),
            (
                "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20\ndelayCacheUntilActive: true\n",
                ["podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive"],
            ),
            ("extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n", ["extenders"]),
        ],
    )
    def test_fields_that_only_a_restart_changes_are_named(self, text: str, fields: list[str]) -> None:
        assert needs_restart(configuration(""), configuration(text)) == fields

    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]\n", []),
            ("profiles: [{schedulerName: other}]\n", ["profiles[*].schedulerName"]),
            ("profiles: [{}, {schedulerName: other}]\n", ["profiles[*].schedulerName"]),
        ],
    )
    def test_who_is_responsible_for_which_pods_stays(self, text: str, fields: list[str]) -> None:
        assert profiles_need_restart(profiles(""), profiles(text)) == fields

    def test_the_order_of_the_queue_stays(self) -> None:
        class Backwards:
            name = "Backwards"

            def sort_key(self, entry: Any) -> tuple[int, ...]:
                return (-entry.queued_at,)

        sets = "{queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: Backwards}]}}"
        given, source = read(f"{HEAD}profiles: [{{plugins: {sets}}}]\n", "scheduler.yaml", FeatureGates())
        serves = extension_points(available() | {"Backwards": Backwards})
        other = resolve(given, serves, FeatureGates(), source)
        assert profiles_need_restart(profiles(""), other) == ["profiles[*].plugins.queueSort"]
