"""What takes long to read, read in a thread before the event loop tells of it: a Pod's attempts, links to a trace."""

import asyncio
from collections.abc import Sequence

from podtrail.story import Library
from podtrail.story.decided_links import links_to
from podtrail.story.link import BackLink

_MUCH = 1 << 17
"""Bytes of spans that take about 10 ms to read."""
_MANY = 500
"""Decisions from which on a thread looks through them."""


async def decided_links(library: Library, trace_id: bytes) -> Sequence[BackLink]:
    """Return the links that point at a trace from spans that are held for decisions."""
    decided = library.decisions.whole()
    if len(decided) <= _MANY:
        return links_to(trace_id, decided)
    return await asyncio.to_thread(links_to, trace_id, decided)


async def read_ahead(library: Library, asked: str, cluster: str = "") -> None:
    """Read the attempts of a Pod, by its key, its name or NAMESPACE/NAME, so far as they are not read yet."""
    unread = library.unread(asked, cluster)
    if sum(one.size for one in unread) > _MUCH:
        library.note_read(await asyncio.to_thread(lambda: [(one, one.read()) for one in unread]))
