"""The folder where the `build.sh` of a suite leaves the programs that its tests start."""

import os
from pathlib import Path

BUILT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podtrail"
