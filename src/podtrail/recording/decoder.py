"""Bytes of a recording to records, as they come: for files read at once and for files that grow."""

import re
from collections.abc import Iterable, Iterator

from podtrail.otlp import Intake, MalformedRequest, read_request
from podtrail.otlp.arrival import latest_end, read_arrival, read_arrival_json
from podtrail.otlp.json import read_json_request
from podtrail.otlp.signals import UNKNOWN
from podtrail.otlp.stored import is_stored_without_request
from podtrail.recording.compressed import ZSTD_MAGIC
from podtrail.recording.encoding import Utf8Reader
from podtrail.recording.foreign import (
    DocumentSplitter,
    has_base64_ids,
    is_document,
    is_jaeger_trace,
    read_object,
)
from podtrail.recording.record import Damage, OtherSignal, Record, RecordingPosition, RecordingProgress
from podtrail.recording.splitting.framed import FramedSplitter, may_begin
from podtrail.recording.splitting.lines import JsonLineSplitter
from podtrail.recording.splitting.splitter import LARGEST, DecodedRequest, FoundRequest, LostStretch, Splitter
from podtrail.recording.splitting.whole import WholeSplitter
from podtrail.transport.compression import TooLarge, Undecodable, decompress

_HEAD = 5
"""Bytes that tell a length in front of a request from JSON."""
_JSON_HEAD = 256
"""Bytes that tell a request in JSON from a document of another program."""
_BEGINNING = RecordingProgress()
_OPEN = re.compile(rb'\s*(\{\s*("\w*("\s*)?)?)?')
"""What may still become either."""
_NAMED = re.compile(rb'"resource(S|_s)pans"')
_RESOURCE_SPANS = b"\x0a"
"""The tag of a request's first field in protobuf. It is a line feed, too, which may stand in front of JSON."""
_BLANK_OR_JSON = re.compile(rb"\s*(\Z|[{\[]\s*([\"{}\[\]]|\Z))")
_NOTHING = Intake((), 0, "")
_FORMAT = re.compile(r"\.(otlp|jsonl?)(\.gz|\.zst)?$")


class RecordingDecoder:
    """Reads one recording from its first byte on, or from where another has come to."""

    def __init__(self, path: str, begin: RecordingProgress = _BEGINNING) -> None:
        self._path = path
        self._head = b""
        self._begin = begin
        self._encoding: Utf8Reader | None = None
        self._splitter = self._splitter_of(begin.unit) if begin.unit else None
        self._latest = begin.arrival

    def feed(self, data: bytes) -> Iterator[Record | Damage]:
        """Take more bytes; yield what is complete."""
        if self._encoding is not None:
            data = self._encoding.text(data)
        if self._splitter is None:
            self._head += data
            if len(self._head) >= _HEAD and self._encoding is None:
                self._encoding = Utf8Reader(self._head)
                self._head = self._encoding.text(self._head)
            if len(self._head) < _HEAD or (_OPEN.fullmatch(self._head) and len(self._head) < _JSON_HEAD):
                return
            data, self._head = self._head, b""
            self._splitter = self._splitter_for(data)
        yield from self._told(self._splitter.feed(data), self._splitter.unit)

    def gap(self, reason: str) -> Iterator[Record | Damage]:
        """Report that bytes are missing here; what is begun is given up."""
        if self._splitter is None:
            self._head = b""
            yield Damage(RecordingPosition(self._path, 0, "byte"), reason)
        else:
            yield from self._told(self._splitter.gap(reason), self._splitter.unit)

    def finish(self) -> Iterator[Record | Damage]:
        """Yield what is left when no more bytes will come."""
        if self._splitter is None:
            self._splitter = self._splitter_for(self._head)
            yield from self._told(self._splitter.feed(self._head), self._splitter.unit)
        yield from self._told(self._splitter.finish(), self._splitter.unit)

    def _splitter_for(self, head: bytes) -> Splitter:
        """Choose by the first bytes; where they are unclear, perhaps damaged, by the file's name."""
        if is_jaeger_trace(head):
            return WholeSplitter(decode_line)
        if is_document(head):
            return DocumentSplitter()
        if _is_bare(head):
            return WholeSplitter(decode_framed)
        if may_begin(head):
            framed = True
        elif head.lstrip().startswith(b"{"):
            framed = False
        elif known := _FORMAT.search(self._path):
            framed = known[1] == "otlp"
        else:
            framed = head[:1] <= bytes([LARGEST >> 24])
        return self._splitter_of("byte" if framed else "line")

    def _splitter_of(self, unit: str) -> Splitter:
        if unit == "byte":
            return FramedSplitter(decode_framed, self._begin.offset)
        mark = self._encoding.mark if self._encoding is not None else 0
        return JsonLineSplitter(decode_line, self._begin.lines, self._begin.offset + mark)

    def _told(self, found: Iterable[FoundRequest | LostStretch], unit: str) -> Iterator[Record | Damage]:
        for piece in found:
            position = RecordingPosition(self._path, piece.number, unit)
            progress = self._progress(piece, unit)
            if isinstance(piece, LostStretch):
                signal = piece.signal
                yield (
                    OtherSignal(position, piece.reason, progress, signal)
                    if signal
                    else Damage(position, piece.reason, progress)
                )
                continue
            arrival, intake, beside, signal = piece.content
            if signal:
                yield OtherSignal(position, f"{signal}, not traces", progress, signal)
            if beside:
                continue
            timed = arrival is not None
            if arrival is None:
                arrival = latest_end(intake.groups)
            self._latest = max(self._latest, arrival)
            put_off = self._latest - arrival if timed else 0
            progress = self._progress(piece, unit)
            yield Record(self._latest, intake, position, timed, put_off, progress)

    def _progress(self, piece: FoundRequest | LostStretch, unit: str) -> RecordingProgress | None:
        if piece.end is None or (self._encoding is not None and self._encoding.converts):
            return None
        lines = piece.number if unit == "line" else 0
        return RecordingProgress(piece.end, unit, lines, self._latest)


def _is_bare(head: bytes) -> bool:
    """Say whether a file that begins so is one request in protobuf without its length: it would be too long a frame."""
    return head.startswith(_RESOURCE_SPANS) and not _BLANK_OR_JSON.match(head)


def is_recording_name(name: str) -> bool:
    """Say whether a file's name is that of a recording."""
    return _FORMAT.search(name) is not None


def decode_line(line: bytes) -> DecodedRequest:
    """Decode a request in OTLP JSON.

    Raises:
        MalformedRequest: it is no request, or holds what can't be told apart into spans.
    """
    intake = read_json_request(line)
    arrival = read_arrival_json(line)
    signal = "" if intake.other_signal == UNKNOWN else intake.other_signal
    if intake.groups:
        return DecodedRequest(arrival, intake, signal=signal)
    if signal and not intake.rejected:
        return DecodedRequest(None, _NOTHING, beside=True, signal=signal)
    if intake.rejected and has_base64_ids(line):
        return DecodedRequest(arrival, read_object(line) or intake)
    if arrival is None and not intake.rejected and line.strip() != b"{}":
        if (foreign := read_object(line)) is not None:
            return DecodedRequest(None, foreign)
        if not _NAMED.search(line):
            raise MalformedRequest("JSON of another kind: it has no resourceSpans")
    return DecodedRequest(arrival, intake)


def decode_framed(raw: bytes) -> DecodedRequest:
    """Decode a request in protobuf, or what the Collector's file exporter frames: zstd, or JSON, of one request."""
    if raw.startswith(ZSTD_MAGIC):
        raw = _decompressed(raw)
    if raw.startswith(b"{"):
        return decode_line(raw)
    if is_stored_without_request(raw):
        return DecodedRequest(None, _NOTHING, beside=True)
    intake = read_request(raw)
    return DecodedRequest(read_arrival(raw), intake)


def _decompressed(raw: bytes) -> bytes:
    try:
        return decompress(raw, "zstd", LARGEST)
    except Undecodable as error:
        raise MalformedRequest(str(error)) from error
    except TooLarge as error:
        raise MalformedRequest(f"more than {LARGEST} bytes come out of the zstd data") from error
