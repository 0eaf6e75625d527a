"""OTLP JSON both ways.

Not by `google.protobuf.json_format`, which reads ids as base64, takes names for enums and snake_case for keys, and says
nothing of it.
"""

from podtrail.otlp.json_reading import read_json_request
from podtrail.otlp.json_writing import span_to_json, write_json_request

__all__ = ["read_json_request", "span_to_json", "write_json_request"]
