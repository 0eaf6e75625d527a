"""States that earlier versions have saved are restored: a sample of each version for each configuration.

The samples are what `python -m tests.pipeline.crossing before FOLDER` writes, by the names of configurations. When a
state's version rises, they stay and those of the new version join them.
"""

from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.pipeline.configurations import CONFIGURATIONS, ROOT
from tests.pipeline.crossing import AT, requests_of
from tests.pipeline.interrupted import Run, Told

SAMPLES = sorted((ROOT / "tests/data/states").glob("*.zip"))


def test_every_configuration_has_a_sample() -> None:
    names = [set(ZipFile(path).namelist()) for path in SAMPLES]
    assert set(CONFIGURATIONS) <= set().union(*names)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_saved_state_goes_on_as_if_nothing_had_been(path: Path, name: str) -> None:
    with ZipFile(path) as samples:
        if name not in samples.namelist():
            pytest.skip("this configuration came later")
        state = samples.read(name)
    tried, requests = CONFIGURATIONS[name], requests_of()
    of_whole, of_parts = Told(), Told()
    whole = Run(tried.settings(), of_whole, tried.gates)
    whole.feed(requests[:AT])
    of_whole.out.clear()
    restored = Run(tried.settings(), of_parts, tried.gates, now=whole.replayer.now)
    restored.restore([state])
    for run in (whole, restored):
        run.feed(requests[AT:])
        run.replayer.finish()
    assert of_parts.out == of_whole.out
