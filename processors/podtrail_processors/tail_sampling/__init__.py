"""`tail_sampling`: holds the spans of a trace until it can be judged, and keeps or drops it as a whole.

The Collector's processor of that name, decision for decision, with policies for scheduling attempts.
"""

from podtrail.component import Context, Factory
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.processor import TailSampling
from podtrail_processors.tail_sampling.shards import Sharded
from podtrail_processors.tail_sampling.span_ingest import SpanIngest


def _create(config: Config, context: Context) -> TailSampling | Sharded:
    strategy = SpanIngest if config.sampling_strategy == "span-ingest" else TailSampling
    return Sharded(strategy, config, context) if config.num_shards > 1 else strategy(config, context)


FACTORY = Factory(kind="processor", type="tail_sampling", Config=Config, create=_create)
