"""The file in which a checkpoint outlives the process."""

import json
import os
from pathlib import Path
from typing import Any

from podtrail.component import Context


class CheckpointFile:
    """Read once, then written whole: a reader never sees half of it."""

    def __init__(self, path: str, context: Context) -> None:
        self._path = Path(path)
        self._log = context.log
        self._written = ""

    def read(self) -> dict[str, Any] | None:
        """Return what was written last; None when there is none, or none that can be read."""
        try:
            told = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.passed_over(error)
            return None
        if not isinstance(told, dict):
            self.passed_over(ValueError("it is no JSON object"))
            return None
        return told

    def passed_over(self, error: Exception) -> None:
        """Say that what stands in the file is of no use."""
        self._log.warning("%s: what it says is passed over, attempts may be told again: %s", self._path, error)

    def write(self, checkpoint: dict[str, Any]) -> None:
        """Write a checkpoint, unless it says what the last one said."""
        text = json.dumps(checkpoint)
        if text == self._written:
            return
        part = self._path.with_name(self._path.name + ".part")
        try:
            part.write_text(text)
            os.replace(part, self._path)
        except OSError as error:
            self._log.warning("can't write %s: %s", self._path, error.strerror)
        else:
            self._written = text
