"""Which workload `podtrail generate` runs: by name, from a file, of a configuration; and what options change of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from podtrail.cli.presets import PRESETS
from podtrail.component import Factory, registry
from podtrail.config import ConfigError, Document, Position, Problem, Source
from podtrail.config.document import DocumentKind, source_files
from podtrail.config.nodes import Entry, MapNode, Node, child, merge
from podtrail.config.validation import Validator

_TYPE: Final = "scheduler"
_WORKLOAD: Final = DocumentKind("a workload", "keys such as nodes, pods, arrival_rate and length")


def simulated_scheduler() -> Factory:
    """Return the factory of the receiver that simulates."""
    factory = registry.find("receiver", _TYPE)
    assert factory is not None
    return factory


def receiver_config(chosen: Node, workload: Mapping[str, Any], nodes: int | None, start: str) -> Any:
    """Return the receiver's configuration: as chosen, with these keys of its workload, as fast as it goes.

    `nodes` is the size of the first group of nodes.

    Raises:
        ConfigError: the configuration is not valid, or has no nodes to change.
    """
    changed = {key: value for key, value in workload.items() if value is not None}
    if nodes is not None:
        groups = _read(chosen).workload.model_dump()["nodes"]
        if not groups:
            raise ConfigError([Problem(chosen.position, ("workload", "nodes"), "is empty", "leave --nodes out")])
        first, *others = groups
        changed["nodes"] = [{**first, "count": nodes}, *others]
    above = {"speed": 0.0, "start": start, "workload": changed}
    return _read(merge(chosen, Document.from_mapping(above, "options").root))


def _read(node: Node) -> Any:
    validator = Validator(node)
    config = validator.read(simulated_scheduler().Config, ())
    if config is None:
        raise ConfigError(validator.problems)
    return config


def chosen_workload(like: str | None, file: Path | None, config: tuple[str, ...]) -> Node:
    """Return the receiver's part of a configuration as one of these gives it, with none its defaults.

    Raises:
        ConfigError: the configuration is not valid.
    """
    if config:
        return _of_configuration(Document.load(config).root)
    if file is not None:
        root = Document.load([f"file:{file}"], kind=_WORKLOAD).root
        return MapNode({"workload": Entry(root.position, root)}, root.position)
    if like is not None:
        return Document.from_mapping({"workload": PRESETS[like]}, f"--like {like}").root
    return MapNode({}, Position(Source("options")))


def folders_of(file: Path | None, config: Sequence[str]) -> Sequence[Path]:
    """Return where the files lie that `chosen_workload` reads: what they name may lie beside them."""
    files = source_files(config) + ([file] if file is not None else [])
    return [path.absolute().parent for path in files]


def _of_configuration(root: MapNode) -> Node:
    receivers = child(root, "receivers")
    for id, entry in receivers.entries.items() if isinstance(receivers, MapNode) else ():
        if id.partition("/")[0] == _TYPE:
            return entry.value if isinstance(entry.value, MapNode) else MapNode({}, entry.value.position)
    raise ConfigError([Problem(root.position, ("receivers",), f"has no {_TYPE} receiver", "use --workload or --like")])
