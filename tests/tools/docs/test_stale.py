"""`./dev docs --check` names the pages that are not what the code says."""

import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tools.docs.__main__ import DOCS, generated, stale


@pytest.fixture(scope="module", name="pages")
def _pages() -> dict[Path, str]:
    """The pages as a new process writes them: a command keeps the help option with which it was asked first."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_generated).result()


def _generated() -> dict[Path, str]:
    return dict(generated(DOCS))


def test_no_page_is_stale(pages: dict[Path, str]) -> None:
    assert stale(DOCS, pages) == []


def test_a_page_that_was_edited_by_hand_is_stale(pages: dict[Path, str], tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs)
    edited, missing, left_over = (docs / "policies" / name for name in ("latency.md", "drop.md", "gone.md"))
    edited.write_text(edited.read_text("utf-8") + "\n", "utf-8")
    missing.unlink()
    left_over.write_text("# gone\n", "utf-8")

    found = stale(
        docs, {docs / path.relative_to(DOCS): text for path, text in pages.items() if path.is_relative_to(DOCS)}
    )

    assert sorted(found) == sorted([edited, missing, left_over])
