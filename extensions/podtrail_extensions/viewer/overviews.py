"""Answers that look at all that is held: the looking is done in a thread, beside the receivers' event loop."""

import asyncio

from podtrail.story import Library, OverviewAnswer, OverviewQuestion


async def overview(library: Library, question: OverviewQuestion, now: int, *, live: bool) -> OverviewAnswer:
    """Return the answer of what a library holds, at `now`.

    Raises:
        ValueError: what is asked for can't be looked for.
    """
    held = question.hold(library, now, live=live)
    found = await asyncio.to_thread(question.look, held)
    return question.tell(library, held, found)
