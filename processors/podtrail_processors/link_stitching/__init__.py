"""`link_stitching`: scheduling attempts, API server, kubelet and operators become one story of a Pod, by links.

Scheduling attempts (`SchedulePod` roots, KEP-5927) get their number in the Pod's chain of attempts and a link to the
attempt before; links of all spans are marked with what became of their target, and the target is told who links to it.
Placed behind `tail_sampling`, it counts attempts that were sampled out as well.
"""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory
from podtrail_processors.link_stitching.config import Config

if TYPE_CHECKING:
    from podtrail_processors.link_stitching.processor import LinkStitching


def _create(config: Config, context: Context) -> "LinkStitching":
    from podtrail_processors.link_stitching.processor import LinkStitching

    return LinkStitching(config, context)


FACTORY = Factory(kind="processor", type="link_stitching", Config=Config, create=_create)
