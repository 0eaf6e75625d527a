"""`load_balancing` (older name `loadbalancing`): each trace to one of several backends, always the same one.

Config             what a user can set: the keys of the Collector's exporter    config.py
routing            what of a span decides where it goes, as a number            routing.py, attribute_text.py
Ring               which backend a number belongs to: the Collector's ring      ring.py
Balancer           and where it goes, for traces stay where they began: pure    balancer.py
BackendResolver    which backends there are                                     resolver.py, a module a kind
BackendConnection  one of them: what is under way to it, whether it answers     connection.py
Backends           all of them                                                  backends.py
the exporter       parts batches, sends the parts, moves on what failed         exporter.py
"""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory
from podtrail_exporters.load_balancing.config import Config

if TYPE_CHECKING:
    from podtrail_exporters.load_balancing.exporter import LoadBalancingExporter

__all__ = ["FACTORY", "Config"]


def _create(config: Config, context: Context) -> "LoadBalancingExporter":
    from podtrail_exporters.load_balancing.exporter import LoadBalancingExporter

    return LoadBalancingExporter(config, context)


FACTORY = Factory(kind="exporter", type="load_balancing", Config=Config, create=_create, aliases=("loadbalancing",))
