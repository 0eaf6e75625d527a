"""Where problems stand, and what would be right."""

from pathlib import Path

import pytest
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import load

from tests.scheduler.configuration.reading import Read

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def said(reading: Read, body: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        reading(HEAD + body, "s.yaml")
    return str(refused.value).splitlines()


def test_a_misspelt_field_is_located_and_corrected(reading: Read) -> None:
    assert said(reading, "profiles:\n- schedulerNam: x\n") == [
        's.yaml:4:3: profiles[0].schedulerNam: unknown field "profiles[0].schedulerNam" (did you mean schedulerName?)'
    ]


def test_a_field_that_resembles_none_is_answered_with_those_there_are(reading: Read) -> None:
    (line,) = said(reading, "leaderElection: {enabled: true}\n")

    assert line.endswith(
        "(known here: leaderElect, leaseDuration, renewDeadline, retryPeriod, resourceLock, "
        "resourceName, resourceNamespace)"
    )


def test_all_problems_are_said_at_once(reading: Read) -> None:
    assert said(reading, "parallelism: 0\npercentageOfNodesToScore: 400\n") == [
        "s.yaml:3:14: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "s.yaml:4:27: percentageOfNodesToScore: Invalid value: 400: not in valid range [0-100]",
    ]


def test_a_problem_deep_in_args_has_its_own_place(reading: Read) -> None:
    body = (
        "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: Foo\n"
    )
    (line,) = said(reading, body)

    assert line.startswith("s.yaml:8:15: profiles[0].pluginConfig[0].args.scoringStrategy.type: ")


def test_what_is_missing_is_shown_where_it_should_stand(reading: Read) -> None:
    (line, *_) = said(reading, "profiles:\n- schedulerName: x\n- percentageOfNodesToScore: 3\n")

    assert line == "s.yaml:5:3: profiles[1].schedulerName: Required value"


def test_a_plugin_that_nobody_has_is_answered_with_how_to_add_it(reading: Read) -> None:
    (line,) = said(reading, "profiles:\n- plugins: {multiPoint: {enabled: [{name: Mine}]}}\n")

    assert line == (
        's.yaml:4:25: profiles[0].plugins.multiPoint: PreFilterPlugin "Mine" does not exist '
        "(install a package with the entry point podtrail_scheduler.plugins, or --plugin Mine=MODULE:CLASS)"
    )


def test_a_document_that_is_no_yaml_is_located(reading: Read) -> None:
    (line,) = said(reading, "a: b: c\n")

    assert line == "s.yaml:3:5: yaml: mapping values are not allowed in this context"


def test_a_document_that_is_nested_without_end_is_refused(reading: Read) -> None:
    assert said(reading, "profiles: " + "[" * 5000 + "]" * 5000) == ["s.yaml: yaml: exceeded max depth"]


def test_aliases_of_aliases_are_read_once_each(reading: Read) -> None:
    layers = [f"- &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]\n" for number in range(1, 40)]

    (line,) = said(reading, "x:\n- &l0 []\n" + "".join(layers))
    assert "unknown field" in line


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(str(tmp_path / "none.yaml"), FeatureGates())

    assert refused.value.message == f"open {tmp_path}/none.yaml: no such file or directory"


def test_a_tag_that_does_not_fit_its_value_is_a_wrong_type(reading: Read) -> None:
    (line,) = said(reading, "parallelism: !!bool 7\n")

    assert line.startswith("s.yaml:3:14: parallelism: json: cannot unmarshal string into Go struct field")


def test_a_configuration_beyond_measure_is_not_read() -> None:
    with pytest.raises(ConfigurationError, match="open /dev/zero: larger than 4 MiB"):
        load("/dev/zero", FeatureGates())
