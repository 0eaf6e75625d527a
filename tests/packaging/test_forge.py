"""What a public forge is given: the workflow, the forms, the hooks. What can be run of it here is run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sizes import large

FORMS = ("bug", "decision", "idea")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    """The workflow as it is written."""
    return (root / ".github" / "workflows" / "checks.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def workflow(text: str) -> Mapping[str, Any]:
    """The workflow."""
    read: Mapping[str, Any] = yaml.safe_load(text)
    return read


def steps(workflow: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of all jobs."""
    for job in workflow["jobs"].values():
        yield from job["steps"]


def test_every_action_is_pinned_by_commit_and_says_its_version(text: str) -> None:
    used = re.findall(r"uses: *(.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_the_workflow_asks_for_no_secret_and_may_write_attestations_alone(
    text: str, workflow: Mapping[str, Any]
) -> None:
    assert "secrets" not in text
    assert workflow["permissions"] == {"contents": "read"}
    asked = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert asked == {"build": {"contents": "read", "id-token": "write", "attestations": "write"}}


def test_the_workflow_tests_on_each_python_that_the_project_names(workflow: Mapping[str, Any], root: Path) -> None:
    named = re.findall(r"Python :: (3\.\d+)", (root / "pyproject.toml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named


def test_the_workflow_runs_what_there_is(workflow: Mapping[str, Any], root: Path) -> None:
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    there = re.findall(r"^  ([a-z]+)\)$", (root / "dev").read_text(encoding="utf-8"), flags=re.MULTILINE)
    asked = [found for command in commands for found in re.findall(r"^\./dev ([a-z]+)", command)]
    assert {"lint", "test", "docs"} <= set(asked) <= set(there)
    named = {word for command in commands for word in re.findall(r"(?:locks|docker|tests)/[\w./-]+", command)}
    assert "tests/envtest/build.sh" in named
    assert [each for each in named if not (root / each).is_file()] == []


@pytest.mark.slow
@pytest.mark.skipif(not large(0, 1), reason="installs from a package index; PODTRAIL_TESTS=large runs it")
def test_what_the_workflow_builds_installs_and_validates(
    workflow: Mapping[str, Any], root: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(
        root, project, ignore=shutil.ignore_patterns(".[!g]*", ".git", "out", "dist", "target", "__pycache__")
    )
    build, install = [step["run"] for step in steps(workflow) if "python -m venv" in step.get("run", "")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | {
        "PATH": path,
        "PIP_NO_COMPILE": "1",
    }
    for script in (build, install):
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=project, env=environment, check=False, capture_output=True, text=True
        )
        if "No matching distribution found" in done.stderr:
            pytest.skip("needs a package index")
        assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (project / "dist").iterdir()) == [".gz", ".whl"]
    assert (project / "out" / "fresh" / "bin" / "podtrail").exists()


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_one_that_the_forge_shows(root: Path, form: str) -> None:
    path = root / ".github" / "ISSUE_TEMPLATE" / f"{form}.yaml"
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(read) == {"name", "description", "labels", "body"}
    ids = [element["id"] for element in read["body"] if element["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 0
    for element in read["body"]:
        assert element["type"] in ("markdown", "textarea", "input")
        assert ("value" if element["type"] == "markdown" else "label") in element["attributes"]
        assert set(element) <= {"type", "id", "attributes", "validations"}
        assert set(element.get("validations", {})) <= {"required"}


def test_the_forms_are_all_checked(root: Path) -> None:
    folder = root / ".github" / "ISSUE_TEMPLATE"
    assert {path.stem for path in folder.glob("*.yaml")} == set(FORMS)


def test_the_hooks_run_tools_that_the_lint_runs(root: Path) -> None:
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = config["repos"]
    assert local["repo"] == "local"
    tools = [hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in local["hooks"]]
    linting = re.findall(r"\$venv/bin/([a-z-]+)", (root / "dev").read_text(encoding="utf-8"))
    assert set(tools) == {"ruff", "mypy", "lint-imports"} <= set(linting)
    assert {hook["language"] for hook in local["hooks"]} == {"system"}


def test_what_the_hook_mends_is_formatted_afterwards_as_in_dev_format(root: Path) -> None:
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    ids = [hook["id"] for hook in config["repos"][0]["hooks"]]
    assert ids.index("check") < ids.index("format")
