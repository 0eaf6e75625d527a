from collections.abc import Iterator

import pytest
from podtrail_scheduler.api_dispatcher.dispatcher import DispatcherSettings

from tests.scheduler.api_dispatcher.bench import DispatcherBench, MakeBench


@pytest.fixture
def make_bench() -> Iterator[MakeBench]:
    benches: list[DispatcherBench] = []

    def make(settings: DispatcherSettings | None = None, *, start: bool = True) -> DispatcherBench:
        benches.append(DispatcherBench(settings, start=start))
        return benches[-1]

    yield make
    for bench in benches:
        bench.timeline.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> DispatcherBench:
    return make_bench()
