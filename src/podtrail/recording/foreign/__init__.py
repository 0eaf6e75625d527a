"""JSON documents of other programs, read as recordings: traces of Jaeger and Zipkin, OTLP that is not in lines.

What a backend gives away is sorted for people, newest first or longest first. So a document is read whole, its requests
put aside in a temporary file, and then given in the order of the latest ends of their spans, when they would have come.
"""

from podtrail.recording.foreign.document import DocumentSplitter, is_document
from podtrail.recording.foreign.objects import has_base64_ids, is_jaeger_trace, is_recorded, read_object

__all__ = [
    "DocumentSplitter",
    "has_base64_ids",
    "is_document",
    "is_jaeger_trace",
    "is_recorded",
    "read_object",
]
