"""A test file: a configuration and the cases that say what it keeps."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Final

from podtrail.component import DecidingConfig
from podtrail.config import ConfigError, Document, Position
from podtrail.config.expansion import Expander
from podtrail.config.feature_gates import parse_gates
from podtrail.config.files import read_text
from podtrail.config.nodes import MapNode, Node, ScalarNode
from podtrail.config.problem import Path, Problem, Source, did_you_mean
from podtrail.config.reader import read_yaml
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.replay.whole import whole
from podtrail.testing.cases.case_file_reader import CaseFileReader
from podtrail.testing.cases.expectations import CaseStep, read_steps
from podtrail.testing.cases.given import Given, read_given
from podtrail.testing.cases.models import FileModel

SUFFIXES: Final = ("_test.yaml", ".test.yaml", "_test.yml", ".test.yml")
_CASE_KEYS: Final = ("name", "given", "expect")


@dataclass(frozen=True, slots=True)
class Case:
    """One case."""

    name: str
    place: Position
    """Of its name."""
    node: MapNode
    given: Given
    steps: Sequence[CaseStep]
    """None were written when empty; only `--update` reads such a file."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A test file that can be run."""

    path: FilePath
    text: str
    settings: Settings
    """With the one pipeline that is tested."""
    config: str
    """What the configuration is called."""
    cases: Sequence[Case]
    involved: frozenset[FilePath]
    """The files that it is made of."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies of the pipeline's samplers, in their order."""
        used = [self.settings.processors[id].config for id in self.settings.pipelines[0].processors]
        return tuple(dict.fromkeys(name for c in used if isinstance(c, DecidingConfig) for name in c.policy_names))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What of the processors' settings is legal but hardly meant; nothing else of the configuration is run."""
        return tuple(warning for warning in self.settings.warnings if warning.path[:1] == ("processors",))


def is_test_file(path: FilePath) -> bool:
    """Tell whether a file is a test file by its name."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".")


def read_suite(path: FilePath, *, unfinished: bool = False) -> Suite:
    """Return what a test file holds. `unfinished`: cases need not say what they expect.

    Raises:
        ConfigError: with all problems of the file, or of the configuration that it names.
    """
    text = read_text(str(path))
    root = read_yaml(text, str(path))
    if not isinstance(root, MapNode):
        place = root.position if root is not None else Position(Source(str(path)))
        raise ConfigError([Problem(place, (), "is not a test file", "it is a map with config and cases")])
    reading = CaseFileReader(root, path)
    model = reading.model(FileModel, ())
    cases = _cases(reading, root.get("cases"), unfinished=unfinished) if "cases" in root.entries else []
    if reading.problems or model is None:
        raise ConfigError(reading.problems)
    try:
        gates = parse_gates(model.feature_gates)
    except ValueError as error:
        reading.problem(("feature_gates",), str(error))
        raise ConfigError(reading.problems) from None
    name, document = _document(reading, root.get("config"), model.environment)
    settings = read_settings(document, gates, idle=("receivers", "exporters", "extensions"))
    involved = {path, *(file for case in cases for file in case.given.recordings)}
    if name:
        involved.add(reading.folder / name)
    tested = _tested(reading, settings, model.pipeline)
    return Suite(path, text, tested, str(reading.folder / name) if name else str(path), cases, frozenset(involved))


def _document(reading: CaseFileReader, node: Node | None, environment: Mapping[str, str]) -> tuple[str, Document]:
    """Return the configuration's path ("": it stands in the test file itself) and the configuration."""
    environ = {**os.environ, **environment}
    match node:
        case ScalarNode(value=str(name)) if name:
            if not (reading.folder / name).is_file():
                hint = "the path is relative to this file"
                reading.problem(("config",), f"there is no file {reading.folder / name}", hint, value=True)
                raise ConfigError(reading.problems)
            document = Document.load([str(reading.folder / name)], environ=environ)
            return name, replace(document, root=whole(document.root))
        case MapNode():
            expander = Expander(environ)
            root = expander.expand(node)
            if expander.problems:
                raise ConfigError(expander.problems, expander.warnings)
            assert isinstance(root, MapNode)
            return "", Document(whole(root), folders=(reading.folder.absolute(),))
    reading.problem(("config",), "must be a path or a configuration", "write config: pipeline.yaml", value=True)
    raise ConfigError(reading.problems)


def _tested(reading: CaseFileReader, settings: Settings, wanted: str) -> Settings:
    names = [pipeline.id for pipeline in settings.pipelines]
    if not wanted and len(names) == 1:
        return settings
    for pipeline in settings.pipelines:
        if pipeline.id == wanted:
            return replace(settings, pipelines=(pipeline,))
    if wanted:
        what = f"there is no pipeline {wanted!r}"
        reading.problem(("pipeline",), what, did_you_mean(wanted, names, "pipelines"), value=True)
    else:
        what = "the configuration has several pipelines"
        reading.problem(("config",), what, f"say which one is tested: pipeline: {names[0]}", value=True)
    raise ConfigError(reading.problems)


def _cases(reading: CaseFileReader, node: Node | None, *, unfinished: bool) -> list[Case]:
    items = reading.items(node, ("cases",), "a list of cases")
    found: list[Case] = []
    for at, item in enumerate(items.items if items else ()):
        case = _case(reading, item, ("cases", at), unfinished=unfinished)
        if case is None:
            continue
        twin = next((other for other in found if other.name == case.name), None)
        if twin is not None:
            what = f"the name is given twice, first at {twin.place}"
            reading.problem(("cases", at, "name"), what, "name it by what is special about it", value=True)
        found.append(case)
    return found


def _case(reading: CaseFileReader, node: Node, path: Path, *, unfinished: bool) -> Case | None:
    case = reading.entries(node, path, "a case: a map with name, given and expect")
    if case is None:
        return None
    before = len(reading.problems)
    reading.known(case, _CASE_KEYS, path)
    if "name" in case.entries:
        name = reading.text(case.get("name"), (*path, "name"), "the name of the case")
    else:
        name = None
        reading.problem(path, "has no name", "begin it with - name: what is so", value=True)
    given = read_given(reading, case.get("given"), (*path, "given"))
    steps: list[CaseStep] = []
    if "expect" in case.entries:
        steps = read_steps(reading, case.get("expect"), (*path, "expect"))
    elif not unfinished:
        hint = "write expect: {pod web-0: kept}, or let podtrail test --update write what is"
        reading.problem(path, "expects nothing", hint, value=True)
    if name is None or len(reading.problems) > before:
        return None
    return Case(name, case.entries["name"].value.position, case, given, steps)


def listed(path: FilePath) -> Sequence[FilePath]:
    """Return the test files below a folder, in order of their names."""
    return sorted(found for found in path.rglob("*") if found.is_file() and is_test_file(found))
