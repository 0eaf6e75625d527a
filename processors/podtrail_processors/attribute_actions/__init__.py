"""Actions on attributes with the Collector's keys: of spans in `attributes`, of resources in `resource`."""

from podtrail_processors.attribute_actions.action import AttributeAction, AttributeValue, check_expression
from podtrail_processors.attribute_actions.edits import Edit, edit_of, edited, key_needed

__all__ = [
    "AttributeAction",
    "AttributeValue",
    "Edit",
    "check_expression",
    "edit_of",
    "edited",
    "key_needed",
]
