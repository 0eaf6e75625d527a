"""Changing the attributes of resources: once for each resource, however many spans it has."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from podtrail.component import Context, Taken
from podtrail.component.passing import PassingProcessor
from podtrail.otlp import Batch, change_resource
from podtrail.otlp.remembering import remembering
from podtrail.otlp.surroundings import resource_fields
from podtrail_processors.attribute_actions import Edit, edit_of, edited
from podtrail_processors.resource.config import Config

_REMEMBERED: Final = 256


class ResourceAttributes(PassingProcessor):
    """Applies the actions to all resources. Spans are not looked at."""

    def __init__(self, config: Config, context: Context) -> None:  # noqa: ARG002 - as every processor
        edits = [edit_of(action) for action in config.attributes]
        self._written = remembering(_REMEMBERED)(partial(_write, edits))
        """What a resource becomes: the same few come with every batch."""

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - nothing here depends on the time
        """Change what is to be changed."""
        written = self._written
        groups = [group._replace(resource=written(group.resource)) for group in batch.groups]
        return Taken((Batch(groups, batch.arrived, batch.verdicts),))


def _write(edits: Sequence[Edit], header: bytes) -> bytes:
    after = edited(resource_fields(header).attributes, edits)
    return change_resource(header, after.changed, after.removed) if after else header
