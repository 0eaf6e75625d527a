"""A disk that is soon full, in a namespace of mounts of its own: only what is run on it sees it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path


class SmallDisk:
    """A tmpfs over a folder, with what was in that; it may become larger later."""

    def __init__(self, folder: Path, size: str) -> None:
        """Mount it. `size`: as mount has it, for example `20m`."""
        self._folder = folder
        told = (
            'cp -r "$1" "$1.kept" && mount -t tmpfs -o "size=$2" tmpfs "$1" && cp "$1.kept"/* "$1" && echo ready && cat'
        )
        self._holder = subprocess.Popen(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", told, "sh", str(folder), size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            raise OSError(f"no small disk can be mounted: {self._holder.communicate()[1].strip()}")

    @property
    def entrance(self) -> Sequence[str]:
        """Returns what stands before a command that is to see it."""
        return ("nsenter", f"--target={self._holder.pid}", "--user", "--mount", "--preserve-credentials")

    def enlarge(self, size: str) -> None:
        """Makes it larger; what is on it stays."""
        command = [*self.entrance, "mount", "-o", f"remount,size={size}", str(self._folder)]
        subprocess.run(command, check=True, timeout=60)

    def close(self) -> None:
        """Ends it, once nothing is run on it any more."""
        self._holder.communicate()
