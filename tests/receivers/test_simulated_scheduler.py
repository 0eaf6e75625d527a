"""The `scheduler` receiver with a profile and plugins of one's own: what it shows of them, and what it refuses."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from tests.forked_run import forked_run
from tests.forks import environment

PLUGINS = """\
import time

from podtrail_scheduler.framework.status import unschedulable


class Picky:
    name = "Picky"

    def __init__(self, handle, args):
        self.way = (args or {})["way"]

    def filter(self, state, pod, node):
        if self.way == "raise":
            raise KeyError("no such way")
        if self.way == "babble":
            return "no"
        if self.way == "refuse":
            return unschedulable("not today")
        if self.way == "dawdle":
            time.sleep(0.02)


class Other:
    name = "Another"

    def __init__(self, handle, args):
        pass

    def filter(self, state, pod, node):
        pass


class Camel:
    name = "Camel"

    def __init__(self, handle, args):
        pass

    def PreFilter(self, state, pod, nodes):
        pass
"""
CONFIG = """\
receivers:
  scheduler:
    speed: 0
    start: "2026-01-01T00:00:00Z"
    plugins: {Picky: "their_plugins:Picky"}
    config:
      profiles:
        - plugins: {multiPoint: {enabled: [{name: Picky}]}}
          pluginConfig: [{name: Picky, args: {way: WAY}}]
    workload:
      length: 20s
      arrival_rate: 0.5
      nodes: [{name: node, count: 3}]
      pods: [{name: web}]
      faults: {}
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}
      - {name: slow, type: slow_attempt, slow_attempt: {threshold: 1h, plugins: {Picky: 15ms}}}
exporters: {file: {path: kept.jsonl}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [scheduler], processors: [tail_sampling], exporters: [file]}}
"""
PROFILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Picky}]}}
    pluginConfig: [{name: Picky, args: {way: refuse}}]
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "their_plugins.py").write_text(PLUGINS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield folder
    sys.modules.pop("their_plugins", None)


def validated(folder: Path, config: str) -> Result:
    """Validate a configuration in `folder`, from the folder above."""
    (folder / "c.yaml").write_text(config, encoding="utf-8")
    return CliRunner().invoke(main, ["validate", "--config", "beside/c.yaml"])


def told_of(folder: Path, config: str) -> tuple[dict[str, Any], str]:
    (folder / "c.yaml").write_text(config, encoding="utf-8")
    command = ("run", "--exit-when-done", "--json", "--config", "beside/c.yaml")
    done = forked_run(*command, folder=folder.parent, environment=environment({}))
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["balanced"]
    return told, done.stderr


def test_a_plugin_that_raises_fails_attempts_and_is_logged_once(folder: Path) -> None:
    told, log = told_of(folder, CONFIG.replace("WAY", "raise"))
    assert told["attempts"].keys() == {"Error"}
    assert "plugin Picky raised KeyError: 'no such way'" in told["waiting"][0]["reason"]
    assert log.count("their_plugins.py") == 1
    assert "plugins failed in the same ways" in log


def test_an_answer_that_is_none_is_logged_once(folder: Path) -> None:
    told, log = told_of(folder, CONFIG.replace("WAY", "babble"))
    assert told["attempts"].keys() == {"Error"}
    assert log.count("Plugin Picky answered str 'no', which is no answer at filter") == 1
    assert "plugins failed in the same ways" in log


def test_a_plugin_that_takes_its_time_makes_attempts_slow_unless_it_is_not_measured(folder: Path) -> None:
    told, _ = told_of(folder, CONFIG.replace("WAY", "dawdle"))
    assert told["kept"].keys() == {"slow"}
    free, _ = told_of(
        folder, CONFIG.replace("WAY", "dawdle").replace("speed: 0", "speed: 0\n    measure_plugins: false")
    )
    assert not free["kept"]


def test_a_profile_may_lie_in_a_file_beside_the_configuration_and_who_refuses_is_who_pods_wait_for(
    folder: Path,
) -> None:
    (folder / "profile.yaml").write_text(PROFILE, encoding="utf-8")
    inline = CONFIG[CONFIG.index("    config:") : CONFIG.index("    workload:")]
    told, _ = told_of(folder, CONFIG.replace(inline, "    config: profile.yaml\n"))
    assert [waiting["reason"] for waiting in told["waiting"]] == ["Picky: not today"]
    assert told["attempts"].keys() == {"Unschedulable"}


def test_without_a_profile_the_default_one_has_all_plugins(folder: Path) -> None:
    inline = CONFIG[CONFIG.index("    config:") : CONFIG.index("    workload:")]
    plain = CONFIG.replace(inline, "").replace('{Picky: "their_plugins:Picky"}', '{Another: "their_plugins:Other"}')
    told, _ = told_of(folder, plain)
    assert told["attempts"].keys() == {"Success"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "their_plugins:Picky",
            "nowhere:Picky",
            "beside/c.yaml:5:22: receivers::scheduler::plugins::Picky: plugin Picky: nowhere:Picky: No module named",
        ),
        ("their_plugins:Picky", "their_plugins:Pick", "has no attribute 'Pick'"),
        ("their_plugins:Picky", "their_plugins", "'their_plugins' is no module:Class"),
        ("their_plugins:Picky", "../their_plugins:Picky", "'../their_plugins:Picky' is no module:Class"),
        ("their_plugins:Picky", "their_plugins:Other", "plugin 'Picky' calls itself 'Another'"),
        (
            "enabled: [{name: Picky}]",
            "enabled: [{name: Pick}]",
            "beside/c.yaml:8:",
        ),
        ("multiPoint", "multipoint", "unknown field"),
        ("{way: WAY}", "{}", "plugin 'Picky' can't be made: KeyError: 'way'"),
        ("pods: [{name: web}]", "pods: [{name: web, scheduler_name: mine}]", "asks for 'mine'"),
        (
            "config:\n",
            "config:\n      extenders: [{urlPrefix: http://x, filterVerb: f}]\n",
            "a simulation asks no extenders",
        ),
        ("length: 20s", "length: 20s\n      objects: {files: [none.yaml]}", "none.yaml: No such file"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(folder: Path, old: str, new: str, told: str) -> None:
    assert old in CONFIG
    done = validated(folder, CONFIG.replace(old, new))
    assert done.exit_code == 2, done.stdout
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_wrong_in_a_profile_of_its_own_is_told_with_its_own_place(folder: Path) -> None:
    (folder / "profile.yaml").write_text(PROFILE.replace("name: Picky}]", "name: Pick}]"), encoding="utf-8")
    inline = CONFIG[CONFIG.index("    config:") : CONFIG.index("    workload:")]
    done = validated(folder, CONFIG.replace(inline, "    config: profile.yaml\n"))
    assert done.exit_code == 2
    assert "beside/c.yaml:6:13: receivers::scheduler::config: " in done.stderr
    assert "profile.yaml:4:" in done.stderr
    assert '"Pick" does not exist' in done.stderr


def test_a_plugin_that_no_profile_enables_is_a_warning(folder: Path) -> None:
    more = CONFIG.replace(
        'Picky: "their_plugins:Picky"', 'Picky: "their_plugins:Picky", Another: "their_plugins:Other"'
    )
    done = validated(folder, more.replace("WAY", "pass"))
    assert done.exit_code == 0, done.stderr
    assert "receivers::scheduler::plugins::Another: no profile enables it" in done.stderr


def test_a_plugin_that_serves_no_extension_point_is_a_warning_with_what_was_meant(folder: Path) -> None:
    more = CONFIG.replace('Picky: "their_plugins:Picky"', 'Picky: "their_plugins:Picky", Camel: "their_plugins:Camel"')
    enabled = more.replace("[{name: Picky}]", "[{name: Picky}, {name: Camel}]").replace("WAY", "pass")
    done = validated(folder, enabled)
    assert done.exit_code == 0, done.stderr
    assert "receivers::scheduler::plugins::Camel: serves no extension point; the methods are pre_enq" in done.stderr
    assert "did you mean pre_filter?" in done.stderr


OBJECTS = """\
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 4Gi, pods: 9}}
---
apiVersion: v1
kind: Pod
metadata: {name: ours}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: theirs}
spec: {schedulerName: theirs, containers: [{name: c, image: i}]}
"""


def test_pods_of_other_schedulers_are_warned_of_and_counted_at_the_end(folder: Path) -> None:
    (folder / "objects.yaml").write_text(OBJECTS, encoding="utf-8")
    workload = CONFIG[CONFIG.index("      arrival_rate") : CONFIG.index("processors:")]
    written = CONFIG.replace("WAY", "pass").replace(workload, "      objects: {files: [objects.yaml]}\n")
    done = validated(folder, written)
    assert done.exit_code == 0, done.stderr
    assert "workload::objects: 1 of 2 Pods ask for theirs, and wait: the profiles are default-sch" in done.stderr
    _, log = told_of(folder, written)
    assert "2 Pods created, 1 bound, 0 pending, 1 of other schedulers" in log


def test_made_up_pods_of_other_schedulers_are_warned_of_without_profiles_too(folder: Path) -> None:
    inline = CONFIG[CONFIG.index("    plugins:") : CONFIG.index("    workload:")]
    done = validated(folder, CONFIG.replace(inline, "").replace("name: web", "name: web, scheduler_name: x"))
    assert done.exit_code == 0, done.stderr
    assert "workload::pods::0::scheduler_name: nobody schedules these Pods: the profiles are default-" in done.stderr
