"""Components of other distributions, installed: what is wrong with one is one clear line, and all others work."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PODTRAIL = Path(sys.executable).parent / "podtrail"
GOOD = '''
"""`tiny`: passes what comes."""

from pydantic import BaseModel, field_validator

from podtrail.component import Factory
from podtrail_processors.batch import FACTORY as BATCH


class Part(BaseModel):
    depth: int = 1


class Config(BaseModel):
    speed: int = 1
    part: Part = Part()
    parts: list[Part] = []

    @field_validator("speed")
    @classmethod
    def _not_seven(cls, speed):
        return {7: {}}.get(speed, {"": speed})[""]


FACTORY = Factory(kind="processor", type="tiny", Config=Config, create=BATCH.create)
TWIN = Factory(kind="processor", type="tiny", Config=Config, create=BATCH.create)
OURS = Factory(kind="processor", type="batch", Config=Config, create=BATCH.create)
ODD = Factory(kind="procesor", type="odd", Config=Config, create=BATCH.create)
UNNAMED = Factory(kind="processor", type="not a type", Config=Config, create=BATCH.create)
LOOSE = Factory(kind="processor", type="loose", Config=dict, create=BATCH.create)
NOTHING = {}
'''
ENDS = "import sys\n\nsys.exit('no licence')\n"
RAISES = 'raise RuntimeError("licence\\nexpired")\n'
BROKEN = {
    "absent": ("absent:FACTORY", "ModuleNotFoundError: No module named 'absent'"),
    "ends": ("ends:FACTORY", "SystemExit: no licence"),
    "loose": ("tiny:LOOSE", "Config is no class of podtrail.config.types.Model"),
    "missing": ("tiny:FACTORI", "AttributeError: module 'tiny' has no attribute 'FACTORI'"),
    "nothing": ("tiny:NOTHING", "is a dict, not a podtrail.component.Factory"),
    "odd": ("tiny:ODD", "kind 'procesor' is none of receiver, processor, exporter, extension"),
    "ours": ("tiny:OURS", "there is a processor 'batch' already"),
    "raises": ("raises:FACTORY", "RuntimeError: licence expired"),
    "twin": ("tiny:TWIN", "there is a processor 'tiny' already"),
    "unnamed": ("tiny:UNNAMED", "'not a type' can't be a type: letters, digits and _, a letter first"),
}
WARNINGS = [
    f"warning: entry point {name} = {value} of others: can't be used: {reason}"
    for name, (value, reason) in BROKEN.items()
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def podtrail(distribution: Callable[..., Path], tmp_path: Path) -> Run:
    """Return a function that runs `podtrail` where a good component and all kinds of broken ones are installed."""
    points = {"good": "tiny:FACTORY"} | {name: value for name, (value, _) in BROKEN.items()}
    folder = distribution("others", {"tiny": GOOD, "raises": RAISES, "ends": ENDS}, points)

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1"}
        return subprocess.run(
            [str(PODTRAIL), *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    return run


@pytest.fixture
def validate(podtrail: Run, tmp_path: Path) -> Run:
    """Return a function that validates a configuration with these lines under `processors`."""

    def run(*lines: str, used: str = "tiny") -> "subprocess.CompletedProcess[str]":
        (tmp_path / "c.yaml").write_text(
            "receivers: {otlp: {protocols: {grpc: {}}}}\n"
            "exporters: {debug: {}}\n"
            f"service: {{pipelines: {{traces: {{receivers: [otlp], processors: [{used}], exporters: [debug]}}}}}}\n"
            "processors:\n" + "".join(f"  {line}\n" for line in lines),
            encoding="utf-8",
        )
        return podtrail("validate", "--config", "c.yaml")

    return run


def test_the_list_shows_what_works_and_says_in_a_line_each_what_does_not(podtrail: Run) -> None:
    shown = podtrail("components", "--json")

    assert shown.returncode == 0
    assert ("processor", "tiny") in {(one["kind"], one["type"]) for one in json.loads(shown.stdout)}
    assert shown.stderr.splitlines() == WARNINGS


def test_validate_says_it_and_takes_what_works(validate: Run) -> None:
    judged = validate("tiny: {speed: 3}")

    assert judged.returncode == 0, judged.stderr
    assert judged.stderr.splitlines() == WARNINGS


def test_a_component_that_is_not_there_may_be_one_of_the_broken(validate: Run) -> None:
    judged = validate("raises: {}", used="raises")

    assert judged.returncode == 2
    assert "unknown processor type 'raises'" in judged.stderr
    assert "those of other distributions can't all be used: podtrail components says why" in judged.stderr


def test_misspelt_keys_of_a_plain_model_are_refused_where_they_stand(validate: Run) -> None:
    judged = validate("tiny:", "  sped: 3", "  part: {dept: 2}", "  parts: [{depth: 1}, {deep: 1}]")

    assert judged.returncode == 2
    assert [line for line in judged.stderr.splitlines() if line.startswith("c.yaml:")] == [
        "c.yaml:6:5: processors::tiny::sped: unknown key 'sped'",
        "c.yaml:7:12: processors::tiny::part::dept: unknown key 'dept'",
        "c.yaml:8:26: processors::tiny::parts::1::deep: unknown key 'deep'",
    ]
    assert "did you mean speed? keys here: speed, part, parts" in judged.stderr


def test_a_configuration_class_that_fails_is_a_problem_at_its_component(validate: Run) -> None:
    judged = validate("tiny: {speed: 7}")

    assert judged.returncode == 2
    assert "c.yaml:5:3: processors::tiny: tiny.Config can't read it: KeyError: ''" in judged.stderr
    assert "Traceback" not in judged.stderr
