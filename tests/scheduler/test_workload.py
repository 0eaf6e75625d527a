"""The configuration of a simulated cluster: what it takes, what it refuses and what importing it costs."""

import subprocess
import sys

import pytest
from podtrail_scheduler.objects.durations import parse_duration
from podtrail_scheduler.objects.quantities import parse_quantity, parse_resources
from podtrail_scheduler.workload import Workload
from pydantic import BaseModel, ValidationError


def models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and those inside it."""
    found = [model]
    for field in model.model_fields.values():
        for inner in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found += models(inner)
    return found


def test_importing_the_configuration_imports_no_opentelemetry() -> None:
    code = "import sys, podtrail_scheduler.workload; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("model", models(Workload), ids=lambda model: model.__name__)
def test_every_key_is_described_and_in_snake_case(model: type[BaseModel]) -> None:
    assert model.model_config["extra"] == "forbid"
    for name, field in model.model_fields.items():
        assert name == name.lower()
        assert field.description, name


def test_what_is_printed_can_be_read_again() -> None:
    workload = Workload.model_validate({})
    assert Workload.model_validate(workload.model_dump()) == workload
    assert workload.model_dump()["length"] == "10m"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"lenght": "1m"}, "Extra inputs are not permitted"),
        ({"length": "10"}, "'10' is no duration; write a number with its unit, such as 500ms, 30s, 5m or 1h30m"),
        ({"length": 600}, "600 is no duration"),
        ({"arrival_rate": 0}, "greater than 0"),
        ({"pods": []}, "at least 1 item"),
        ({"pods": [{"name": "a"}, {"name": "a"}]}, "pods has a more than once"),
        ({"pods": [{"name": "A_b"}]}, "String should match pattern"),
        ({"pods": [{"name": "a", "requests": {"cpu": "1 core"}}]}, "'1 core' is no quantity"),
        ({"nodes": [{"name": "a", "allocatable": {"memory": "4GB"}}]}, "'4GB' is no quantity"),
        ({"faults": {"bind_refused": [{"kinds": ["nobody"]}]}}, "faults name kinds that pods does not have: nobody"),
        (
            {"pods": [{"name": "a", "node_affinity": [{"key": "cores", "operator": "Gt"}]}]},
            "Gt needs exactly one integer in values",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Workload.model_validate(changes)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0s", 0), ("1h30m", 5400 * 10**9), ("1.5s", 1_500_000_000), ("250ms", 250_000_000), ("3us", 3000), ("7ns", 7)],
)
def test_durations_are_written_as_in_go(text: str, value: int) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize("text", ["", "5", "-1s", "1s ", "s", "1d", True, 5, None])
def test_other_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


def test_quantities_are_exact_and_rounded_up() -> None:
    resources = parse_resources({"cpu": "500m", "memory": "1Gi", "pods": 110, "example.com/gpu": "2"})
    assert resources == {"cpu": 500, "memory": 1024**3, "pods": 110, "example.com/gpu": 2}
    assert parse_resources({"cpu": "0.0001"}) == {"cpu": 1}
    assert parse_quantity("1.5k") == 1500
    assert parse_quantity("2e3") == 2000
    assert [*map(parse_quantity, ("+1", "1E", "+.5Ki"))] == [1, 10**18, 512]


@pytest.mark.parametrize("text", ["", "1Kb", "-1", "1..2", "e3", "1e", "0x10"])
def test_other_quantities_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        parse_quantity(text)


def test_slow_plugins_cannot_take_the_names_of_others() -> None:
    slow = {"name": "NodeName", "extension_point": "score", "takes": "1s"}
    with pytest.raises(ValidationError, match="names of its own, these are taken: NodeName"):
        Workload.model_validate({"faults": {"slow_plugins": [slow]}})
