"""What is wrong with a configuration: kube-scheduler's own words, and where in the file it stands."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One thing that is wrong; `line` and `column` count from 1, 0 when it stands nowhere; `remedy` may be empty."""

    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    remedy: str = ""

    def located(self, file: str) -> str:
        """The problem behind `FILE:LINE:COLUMN`."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        path = f"{self.path}: " if self.path and not self.message.startswith(self.path) else ""
        return f"{place}: {path}{self.message}" + (f" ({self.remedy})" if self.remedy else "")


class ConfigurationError(Exception):
    """A configuration that is refused. `message` is all that kube-scheduler would say of it, problems are located."""

    def __init__(self, message: str, problems: Sequence[ConfigurationProblem], file: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(problems)
        self.file = file

    def __str__(self) -> str:
        return "\n".join(problem.located(self.file or "configuration") for problem in self.problems)


@dataclass(frozen=True, slots=True)
class RefusedField:
    """One refused value of a field (`field.Error` of the API machinery)."""

    path: str
    kind: str
    detail: str = ""
    value: Any = None

    def __str__(self) -> str:
        body = self.kind if self.kind in ("Required value", "Forbidden") else f"{self.kind}: {_shown(self.value)}"
        return f"{self.path}: {body}" + (f": {self.detail}" if self.detail else "")


def invalid(path: str, value: Any, detail: str) -> RefusedField:
    """The error of a value that is not allowed (`field.Invalid`)."""
    return RefusedField(path, "Invalid value", detail, value)


def required(path: str, detail: str = "") -> RefusedField:
    """The error of a missing value (`field.Required`)."""
    return RefusedField(path, "Required value", detail)


def forbidden(path: str, detail: str) -> RefusedField:
    """The error of a value where none is allowed (`field.Forbidden`)."""
    return RefusedField(path, "Forbidden", detail)


def duplicate(path: str, value: Any) -> RefusedField:
    """The error of a value that stands there twice (`field.Duplicate`)."""
    return RefusedField(path, "Duplicate value", "", value)


def unsupported(path: str, value: str, supported: Sequence[str]) -> RefusedField:
    """The error of a value that is not one of those allowed (`field.NotSupported`)."""
    detail = "supported values: " + ", ".join(map(json.dumps, supported))
    return RefusedField(path, "Unsupported value", detail, value)


def aggregate(errors: Sequence[RefusedField]) -> str:
    """Several errors in one text, each once, as Kubernetes' aggregates print them."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
