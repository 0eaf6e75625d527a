"""Writes what kube-scheduler's sources say, by minor release: reasons of its plugins, and its log calls.

    python -m tools.kube_scheduler_texts 1.26=DIR 1.27=DIR …

Each DIR is a tree of k8s.io/kubernetes, or a part of one with pkg/scheduler: a checkout, a module or a vendored copy.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from podtrail.reconstruction.vocabulary import MESSAGES

_ROOT: Final = Path(__file__).parents[1]
REASONS: Final = _ROOT / "src/podtrail/otlp/reason_table.py"
LOG_CALLS: Final = _ROOT / "tests/data/kube-scheduler/log-calls.tsv"
FIRST_OF_LOG_CALLS: Final = 26
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CONSTANT = re.compile(
    r'\b(\w+)(?: ConflictReason| string)?\s*:?=\s*(?:fmt\.Sprintf\()?((?:\w+ \+ )?"(?:[^"\\]|\\.)*"(?: \+ \w+)?)'
)
_STATUS = re.compile(
    r"NewStatus\(\s*(?:framework|fwk)\.(?P<code>Unschedulable|UnschedulableAndUnresolvable|Pending)\s*,"
    r"|statusUnschedulable\(\s*\w+\s*,|AppendReason\("
)
_FIT = re.compile(r'Reason:\s*(?:fmt\.Sprintf\()?"([^"]+)"')
_NAME = re.compile(r'^\s*(?:const )?\w*Name\s*(?:string )?= (?:names\.(\w+)|"(\w+)")', re.MULTILINE)
_NAMES = re.compile(r'^\s*(\w+)\s*= "(\w+)"', re.MULTILINE)
_VERB = re.compile(r"%[+#]?[a-zA-Z]")
_CALL = re.compile(
    r"\b(?:klog|utilruntime|[A-Za-z]*[lL]ogger[A-Za-z]*|log)"
    r"(?P<chain>(?:\.(?:V|WithName|WithValues|FromContext|TODO|Background)\((?:[^()]|\([^()]*\))*\))*)"
    r"\.(?:Info|InfoS|Infof|Infoln|InfoDepth|Error|ErrorS|Errorf|Errorln|Warning|Warningf|WarningS|Fatal|Fatalf"
    r"|HandleError|HandleErrorWithContext|HandleErrorWithLogger)\("
)
_VERBOSITY = re.compile(r"\.V\((?:klog\.Level\()?(\d+)")

# Reasons that are the text of an error, or that stood elsewhere: first and last minor release, plugin, text.
_ERRORS: Final = (
    (20, 22, "VolumeBinding", "node(s) didn't find available persistent volumes to bind"),
    (20, 22, "VolumeBinding", "node(s) had volume node affinity conflict"),
    (20, 22, "VolumeBinding", "node(s) did not have enough free storage"),
    (20, 22, "VolumeBinding", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    (20, 26, "VolumeBinding", 'persistentvolumeclaim "*" not found'),
    (27, 0, "VolumeRestrictions", 'persistentvolumeclaim "*" not found'),
    (22, 0, "VolumeBinding", 'waiting for ephemeral volume controller to create the persistentvolumeclaim "*"'),
    (22, 0, "VolumeBinding", 'persistentvolumeclaim "*" bound to non-existent persistentvolume "*"'),
    (20, 0, "VolumeBinding", 'persistentvolumeclaim "*" is being deleted'),
    (22, 0, "VolumeBinding", "PVC * was not created for pod * (pod is not owner)"),
    (26, 0, "DynamicResources", 'resourceclaim "*" is being deleted'),
    (26, 0, "DynamicResources", "resourceclaim.resource.k8s.io * not found"),
    (26, 0, "DynamicResources", "resourceclaim * not found"),
    (26, 0, "DynamicResources", "pod * ResourceClaim not created yet"),
    (26, 0, "DynamicResources", "ResourceClaim * was not created for pod * (pod is not owner)"),
)


class Reason(NamedTuple):
    """A reason, and its status."""

    plugin: str
    text: str
    """With `*` for what varies."""
    status: str


def plugin_reasons(tree: Path) -> set[Reason]:
    """Return the reasons for which plugins in a tree refuse a node or a Pod."""
    plugins = tree / "pkg/scheduler/framework/plugins"
    names = plugins / "names/names.go"
    known = dict(_NAMES.findall(names.read_text())) if names.exists() else {}
    found: set[Reason] = set()
    for folder in sorted(path for path in plugins.iterdir() if path.is_dir()):
        if folder.name in ("examples", "testing", "helper", "feature", "names"):
            continue
        sources = {path: path.read_text() for path in sorted(folder.glob("*.go")) if _is_source(path)}
        constants = {name: value for text in sources.values() for name, value in _CONSTANT.findall(text)}
        named = [name for text in sources.values() for name in _names(text, known)]
        for text in sources.values():
            for plugin in _names(text, known) or named[:1]:
                found |= {Reason(plugin, *reason) for reason in _reasons(text, constants)}
    return found


def _names(text: str, known: Mapping[str, str]) -> list[str]:
    return [known.get(name, name) or literal for name, literal in _NAME.findall(text)]


def _is_source(path: Path) -> bool:
    return not path.name.endswith("_test.go") and "testing" not in path.parts


def _reasons(text: str, constants: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "InsufficientResource" in text:
        for reason in _FIT.findall(text):
            yield _pattern(reason), "Unschedulable"
    for found in _STATUS.finditer(text):
        arguments = _arguments(text, found.end())
        literal = _STRING.search(arguments)
        names = re.findall(r"\b[A-Za-z]\w*\b", arguments.split(",")[0])
        status = found["code"] or "Unschedulable"
        if literal and (arguments.lstrip().startswith(('"', "fmt.Sprintf"))):
            yield _pattern(literal[1]), status
        elif value := next((_value(constants[name], constants) for name in names if name in constants), ""):
            yield value, status
    if "ConflictReason" in text:  # VolumeBinding appends them to one status
        for name, value in constants.items():
            if name.startswith("ErrReason") and name in text:
                yield _value(value, constants), "UnschedulableAndUnresolvable"


def _value(expression: str, constants: Mapping[str, str]) -> str:
    """Return the text of a constant, which may be another one with a text appended."""
    parts = [part.strip() for part in expression.split(" + ")]
    return "".join(
        _pattern(part[1:-1]) if part.startswith('"') else _value(constants.get(part, ""), constants)
        for part in parts
        if part
    )


def _pattern(literal: str) -> str:
    text = literal.replace('\\"', '"').replace("%q", '"*"')
    return _VERB.sub("*", text)


def _arguments(text: str, at: int) -> str:
    """Return the arguments of a call that begin at `at`."""
    depth, end = 1, at
    while depth and end < len(text):
        if text[end] == '"' and (string := _STRING.match(text, end)):
            end = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at : end - 1]


def log_calls(tree: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the log calls of pkg/scheduler: message, verbosity ("" for an error), file."""
    for path in sorted((tree / "pkg/scheduler").rglob("*.go")):
        if not _is_source(path):
            continue
        text = path.read_text()
        for found in _CALL.finditer(text):
            literal = _STRING.search(_arguments(text, found.end()))
            verbosity = _VERBOSITY.findall(found["chain"])
            if literal:
                place = str(path.relative_to(tree / "pkg/scheduler"))
                yield literal[1].replace('\\"', '"'), verbosity[0] if verbosity else "", place


def _write_reasons(trees: Mapping[int, Path]) -> None:
    minors: dict[Reason, set[int]] = defaultdict(set)
    for minor, tree in trees.items():
        for reason in plugin_reasons(tree):
            if re.search(r"[a-z]{3}", reason.text):
                minors[reason].add(minor)
    for text in ("Insufficient *", "Too many pods"):
        minors[Reason("NodeResourcesFit", text, "Unschedulable")] |= set(range(20, 24))
    for first, last, plugin, text in _ERRORS:
        minors[Reason(plugin, text, "UnschedulableAndUnresolvable")] |= set(range(first, (last or max(trees)) + 1))
    rows = []
    for reason, known in minors.items():
        worse = reason._replace(status="UnschedulableAndUnresolvable")
        if reason != worse and worse in minors and reason.plugin != "DynamicResources":
            continue
        rows.append((reason.plugin, min(known), max(known), reason.text, reason.status))
    lines = "".join(f"    {row!r},\n" for row in sorted(rows))
    REASONS.write_text(
        '"""Reasons of kube-scheduler\'s plugins. Written by `tools/kube_scheduler_texts.py`; do not edit."""\n\n'
        "# ruff: noqa: E501\n\nfrom typing import Final\n\n"
        "REASONS: Final = (\n"
        "    # plugin, first and last minor release, text with `*` for what varies, status\n"
        f"{lines})\n"
    )
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(REASONS)], check=True)  # noqa: S603 - our own file


def read_log_calls() -> list[list[str]]:
    """Return the rows of the recorded log calls: releases, verbosity, file, status, message."""
    return [line.split("\t") for line in LOG_CALLS.read_text().splitlines()[1:]]


def _write_log_calls(trees: Mapping[int, Path]) -> None:
    ignored = {row[4] for row in read_log_calls() if row[3] == "ignored"} if LOG_CALLS.exists() else set()
    minors: dict[str, set[int]] = defaultdict(set)
    places: dict[str, tuple[str, str]] = {}
    for minor, tree in sorted(trees.items()):
        for message, verbosity, place in log_calls(tree) if minor >= FIRST_OF_LOG_CALLS else ():
            minors[message].add(minor)
            places[message] = verbosity, place
    rows = ["releases\tverbosity\tfile\tstatus\tmessage"]
    for message in sorted(minors, key=lambda message: (places[message][1], message)):
        kind = MESSAGES.get(message.encode())
        status = kind.name if kind else "ignored" if message in ignored else "unknown"
        releases = f"1.{min(minors[message])}-1.{max(minors[message])}"
        rows.append("\t".join((releases, *places[message], status, message)))
    LOG_CALLS.write_text("\n".join(rows) + "\n")


def main(arguments: Sequence[str]) -> None:
    """Write both tables from the trees `1.MINOR=DIR`."""
    trees = {
        int(minor.removeprefix("1.")): Path(tree) for minor, _, tree in (each.partition("=") for each in arguments)
    }
    if not trees:
        sys.exit(__doc__)
    _write_reasons(trees)
    _write_log_calls(trees)


if __name__ == "__main__":
    main(sys.argv[1:])
