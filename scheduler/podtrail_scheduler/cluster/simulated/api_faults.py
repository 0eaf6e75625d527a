"""Faults of the simulated API server: requests that conflict, are refused, or whose answer is lost."""

from collections.abc import Sequence
from random import Random

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.workload.faults import ApiFault, Call

from .timeline import Timeline


class ApiFaults:
    """Draws which requests are hit, from the seed."""

    def __init__(self, faults: Sequence[ApiFault], timeline: Timeline, seed: str) -> None:
        """Times of `faults` count from now."""
        self._timeline = timeline
        self._began = timeline.now()
        self._faults = faults
        self._random = Random(f"{seed}/api-faults")  # noqa: S311, reproducible on purpose
        self.hit = 0
        """How many requests were hit."""

    async def ahead(self, call: Call, name: str) -> bool:
        """To be awaited before the request of that object is carried out.

        Returns whether its answer is lost: then `lost` is to be called when it has been carried out.

        Raises:
            ApiError: the request is not to be carried out.
        """
        for fault in self._faults:
            if self._hits(fault, call):
                self.hit += 1
                await self._timeline.sleep(fault.takes)
                if fault.answer == "conflict":
                    why = "the object has been modified; please apply your changes to the latest version and try again"
                    raise ApiError(f'Operation cannot be fulfilled on pods "{name}": {why}', "Conflict", 409)
                if fault.answer == "unavailable":
                    raise ApiError("the server is currently unable to handle the request", "ServiceUnavailable", 503)
                if fault.answer == "lost":
                    return True
        return False

    @staticmethod
    def lost(call: Call) -> ApiError:
        """What a client says whose request was carried out and never answered."""
        return ApiError(f"{call}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)")

    def _hits(self, fault: ApiFault, call: Call) -> bool:
        if fault.calls and call not in fault.calls:
            return False
        since = self._timeline.now() - self._began - fault.begins
        if since < 0 or (fault.lasts is not None and since >= fault.lasts):
            return False
        return fault.share >= 1 or self._random.random() < fault.share
