"""OTLP JSON both ways.

`google.protobuf.json_format` is not used because it reads trace and span ids as base64.
"""

from podtrail.otlp.json_reading import read_json_request
from podtrail.otlp.json_writing import write_json_request

__all__ = ["read_json_request", "write_json_request"]
