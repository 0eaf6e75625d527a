"""What docs/operators.md shows works as it says."""

import re
from pathlib import Path
from typing import Any

import click.testing
import kopf
from kopf.cli import main as kopf_command
from podtrail_scheduler.command.main import main as scheduler_command

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operators.md").read_text("utf-8")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEY = "tracing.k8s.io/traceparent"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_handler_makes_a_deployment_whose_pods_lead_back() -> None:
    (code,) = blocks("python")
    names: dict[str, Any] = {}
    before = kopf.get_default_registry()
    kopf.set_default_registry(kopf.OperatorRegistry())
    try:
        exec(compile(code, "docs/operators.md", "exec"), names)
    finally:
        kopf.set_default_registry(before)
    metadata = {"name": "blue", "namespace": "shop", "uid": "u", "annotations": {KEY: TRACEPARENT}}
    given: Any = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"image": "shop:1"}}
    body = kopf.Body(given)
    made = names["apply"](
        name="blue", spec=body.spec, body=body, annotations=body.metadata.annotations, reason=kopf.Reason.CREATE
    )
    # Without a provider the handler is not sampled, and hands on what its object carries.
    assert made["metadata"]["annotations"] == made["spec"]["template"]["metadata"]["annotations"] == {KEY: TRACEPARENT}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_the_commands_have_the_options_that_are_shown() -> None:
    (console,) = blocks("console")
    commands = re.sub(r"\\\n\s+", "", console).splitlines()
    runner = click.testing.CliRunner()
    helps = {
        "kopf run": runner.invoke(kopf_command, ["run", "--help"]).output,
        "podtrail-scheduler": runner.invoke(scheduler_command, ["--help"]).output,
    }
    for command in commands:
        for path in re.findall(r"examples/\S+", command):
            assert (ROOT / path).is_file()
        for program, text in helps.items():
            if program in command:
                assert [option for option in re.findall(r"--[a-z-]+", command) if option not in text] == []
