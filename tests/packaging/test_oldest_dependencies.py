"""The lower end of what the project asks for works; the upper end is what the lock holds and all other tests run on."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.sizes import large


@pytest.mark.slow
@pytest.mark.skipif(not large(0, 1), reason="installs from a package index; PODTRAIL_TESTS=large runs it")
def test_instrumentation_works_with_the_oldest_sdk_of_the_range(root: Path, tmp_path: Path) -> None:
    dependencies = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    ranges = [re.fullmatch(r"(opentelemetry-[a-z-]+)>=(\d+\.\d+),<2", each) for each in dependencies]
    oldest = [f"{found[1]}=={found[2]}.*" for found in ranges if found]
    assert len(oldest) == 4
    older = tmp_path / "older"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(older), *oldest]
    if subprocess.run(pip, check=False, capture_output=True, timeout=300).returncode:
        pytest.skip("needs a package index")
    tests = [str(root / "tests" / "instrumentation" / f"test_{name}.py") for name in ("provider", "recorded", "span")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(older)},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def test_a_library_of_which_private_parts_are_used_is_held_to_the_version_that_is_tested(root: Path) -> None:
    dependencies = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (asked,) = [each.removeprefix("aiohttp") for each in dependencies if each.startswith("aiohttp")]
    lock = (root / "locks" / "runtime.txt").read_text(encoding="utf-8")
    major, minor = map(int, re.findall(r"^aiohttp==(\d+)\.(\d+)", lock, re.MULTILINE)[0])
    assert asked == f">={major}.{minor},<{major}.{minor + 1}"
