"""Pipeline time as a test tells it."""

from podtrail.pipeline.clock import PipelineClock


class Told(PipelineClock):
    """A clock that is set."""

    def __init__(self, time: int = 0) -> None:
        super().__init__()
        self.time = time

    def now(self) -> int:
        return self.time
