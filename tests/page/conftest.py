from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.running import running


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the page of a podtrail is that has taken a whole simulation."""
    folder: Path = tmp_path_factory.mktemp("site")
    with running(folder) as address:
        yield address
