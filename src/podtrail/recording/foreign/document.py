"""A document of another program as a stream of requests."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from podtrail.otlp import MalformedRequest
from podtrail.otlp.json import read_json_request
from podtrail.otlp.signals import signal_of
from podtrail.recording.foreign.elements import Element, ElementScanner, TooDeep
from podtrail.recording.foreign.jaeger import is_jaeger, jaeger_request
from podtrail.recording.foreign.spool import Spool
from podtrail.recording.foreign.tempo import is_resource_spans, is_tempo, resource_spans, tempo_request
from podtrail.recording.foreign.zipkin import is_zipkin, zipkin_request
from podtrail.recording.splitting.splitter import LARGEST, DecodedRequest, FoundRequest, LostStretch

_DOCUMENT = re.compile(rb'\s*(\[|\{[ \t\r]*+\n\s++"|\{\s*"(data|total|limit|offset|errors)"\s*:)')
_TOGETHER = 4096
"""Spans of one trace that stand side by side become one request, up to so many."""
_MOST_KEYS = 4


def is_document(head: bytes) -> bool:
    """Say whether a file that begins so is one JSON document, not requests in lines."""
    return bool(_DOCUMENT.match(head))


class DocumentSplitter:
    """Takes a document in pieces; says at once what is lost, and at the end what there is, in the order of time."""

    unit = "byte"

    def __init__(self) -> None:
        self._scanner = ElementScanner()
        self._spool = Spool()
        self._spans: list[Mapping[str, Any]] = []
        """Zipkin's, of one trace, side by side."""
        self._first = 0
        """Where these begin."""
        self._seen = 0
        self._given_up = False

    def feed(self, data: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Take more bytes."""
        if self._given_up:
            return
        try:
            for element in self._scanner.feed(data):
                self._seen += 1
                yield from self._element(element)
        except TooDeep as error:
            self._given_up = True
            yield LostStretch(0, str(error))

    def gap(self, reason: str) -> Iterator[FoundRequest | LostStretch]:
        """Give up: where the document goes on, nothing says at what depth."""
        if not self._given_up:
            self._given_up = True
            yield LostStretch(self._scanner.begun or 0, f"{reason}; the rest of the document can't be told apart")

    def finish(self) -> Iterator[FoundRequest | LostStretch]:
        """Yield the requests."""
        yield from self._joined()
        begun = self._scanner.begun
        if begun is not None and not self._given_up:
            yield LostStretch(begun, "cut off: the document does not end")
        elif not self._seen and not self._given_up:
            yield LostStretch(0, "a JSON document without traces")
        for number, intake in self._spool.take():
            yield FoundRequest(number, DecodedRequest(None, intake))

    def _element(self, element: Element) -> Iterator[LostStretch]:
        if element.size > LARGEST:
            yield LostStretch(element.number, f"an object of {element.size} bytes, more than {LARGEST}")
            return
        try:
            read = json.loads(element.raw)
        except (ValueError, RecursionError) as error:
            yield LostStretch(element.number, f"not JSON: {error}")
            return
        if is_zipkin(read):
            other = self._spans and self._spans[0]["traceId"] != read["traceId"]
            if other or len(self._spans) >= _TOGETHER:
                yield from self._joined()
            if not self._spans:
                self._first = element.number
            self._spans.append(read)
            return
        yield from self._joined()
        if is_jaeger(read):
            yield from self._request(element.number, jaeger_request(read))
        elif is_resource_spans(read):
            yield from self._request(element.number, {"resourceSpans": [resource_spans(read)]})
        elif is_tempo(read):  # requests, or answers, in an array
            yield from self._request(element.number, tempo_request(read))
        elif signal := signal_of(read):
            yield LostStretch(element.number, f"{signal}, not traces", signal=signal)
        else:
            keys = [*read][:_MOST_KEYS] + ["…"] * (len(read) > _MOST_KEYS)
            yield LostStretch(element.number, f"neither a trace nor a span: an object with the keys {', '.join(keys)}")

    def _joined(self) -> Iterator[LostStretch]:
        if self._spans:
            spans, self._spans = self._spans, []
            yield from self._request(self._first, zipkin_request(spans))

    def _request(self, number: int, request: Mapping[str, Any]) -> Iterator[LostStretch]:
        try:
            intake = read_json_request(json.dumps(request).encode())
        except (MalformedRequest, RecursionError) as error:
            yield LostStretch(number, str(error))
        else:
            self._spool.put(number, intake)
