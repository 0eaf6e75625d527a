"""Lists of ids that name components: each must be configured, and stand there once."""

from collections.abc import Mapping
from typing import Any

from podtrail.config.nodes import ListNode, MapNode, ScalarNode, descend
from podtrail.config.problem import Path, did_you_mean
from podtrail.config.validation import Validator


class ComponentLists:
    """Reads the lists of one configuration; problems gather in the validator."""

    def __init__(self, check: Validator, root: MapNode) -> None:
        """Read lists in `root`; `check` gathers problems."""
        self._check = check
        self._root = root

    def given(self, path: Path, name: str) -> bool:
        """Tell whether something stands in the list `name` of what is at a path, right or wrong."""
        node = descend(self._root, (*path, name))
        if isinstance(node, ListNode):
            return bool(node.items)
        return not (node is None or (isinstance(node, ScalarNode) and node.value is None))

    def read(self, path: Path, kind: str, shown: Path, configured: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the ids in a list, each checked.

        Args:
            path: where it stands.
            kind: of the components.
            shown: what reports name, as the Collector does.
            configured: the components there are, by id.
        """
        node = descend(self._root, path)
        if node is None or (isinstance(node, ScalarNode) and node.value is None):
            return ()
        if not isinstance(node, ListNode):
            self._check.problem(path, "must be a list of ids", "write for example [otlp, batch]", value=True)
            return ()
        found: list[str] = []
        for at, item in enumerate(node.items):
            text = item.value if isinstance(item, ScalarNode) else None
            if not isinstance(text, str):
                self._check.problem((*path, at), "must be an id", "write type or type/name", value=True)
            elif text in found:
                self._check.problem((*path, at), f'references {kind} "{text}" more than once', "keep one", shown=shown)
            else:
                found.append(text)
                if text not in configured and descend(self._root, ("connectors", text)) is None:
                    hint = did_you_mean(text, tuple(configured), f"{kind}s configured")
                    message = f'references {kind} "{text}" which is not configured'
                    self._check.problem((*path, at), message, hint or f"configure it under {kind}s", shown=shown)
        return tuple(found)
