"""Takes out of the image's environment what podtrail never imports; docker/Dockerfile runs it: slim.py /opt/podtrail.

More than half of what is installed is the Kubernetes client: a class for each kind and each request, twice. podtrail
uses of it how one finds the API server and proves who one is. What is named here and isn't there is an error, so that
a newer release of a dependency is looked at again; tests/docker run podtrail from what is left.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

NOT_IMPORTED = (
    # of the Kubernetes client: what its synchronous half asks with
    *("requests", "requests-oauthlib", "oauthlib", "websocket-client", "urllib3", "charset-normalizer", "durationpy"),
    # of rich: source code and Markdown in colour
    *("pygments", "markdown-it-py", "mdurl"),
)
"""Distributions that others ask for."""

REMOVED = (
    *("kubernetes/client", "kubernetes/config", "kubernetes/dynamic", "kubernetes/informer", "kubernetes/stream"),
    *("kubernetes/leaderelection", "kubernetes/utils", "kubernetes/watch"),
    *("kubernetes/aio/client/api", "kubernetes/aio/client/models"),
    *("kubernetes/aio/dynamic", "kubernetes/aio/leaderelection", "kubernetes/aio/stream", "kubernetes/aio/watch"),
    "zstandard/_cffi.*.so",  # for PyPy; CPython takes the other
)
"""Below site-packages."""

REWRITTEN = {
    "kubernetes/__init__.py": "",
    "kubernetes/aio/__init__.py": "",
    "kubernetes/aio/client/__init__.py": (
        "from .configuration import Configuration\nfrom . import rest\nfrom .api_client import ApiClient\n"
    ),
    "kubernetes/aio/client/models.py": "",
    "kubernetes/aio/utils/__init__.py": "",
}
"""Modules that import what is removed, and what is left of them."""

SOURCES = ("*.pyx", "*.pxd", "*.pxi", "*.c", "*.h", "*.pyi", "*_test.py")
"""Of no use at run time."""


def main(environment: Path) -> None:
    """Slims a virtual environment."""
    pip = [environment / "bin" / "python", "-m", "pip"]
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", *NOT_IMPORTED], check=True)
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "pip"], check=True)
    (packages,) = environment.glob("lib/python3.*/site-packages")
    for pattern in REMOVED:
        _remove(_found(packages, pattern))
    for name, text in REWRITTEN.items():
        (packages / name).write_text(text)
    for pattern in SOURCES:
        _remove(packages.rglob(pattern))
    strip = shutil.which("strip")
    if strip is None:
        sys.exit("slim.py: strip is missing (binutils): compiled modules would keep what only debuggers read")
    for library in packages.rglob("*.so"):
        subprocess.run([strip, "--strip-unneeded", library], check=True)
    for bytecode in list(packages.rglob("__pycache__")):
        shutil.rmtree(bytecode)
    # Nothing is written where it runs, so that what is compiled later is compiled at each start.
    subprocess.run([environment / "bin" / "python", "-m", "compileall", "-q", packages], check=True)


def _found(packages: Path, pattern: str) -> list[Path]:
    found = list(packages.glob(pattern))
    if not found:
        sys.exit(f"slim.py: there is no {pattern} below {packages}; what has become of it?")
    return found


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            os.remove(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
