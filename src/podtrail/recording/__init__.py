"""Arrival-stamped recordings: one ExportTraceServiceRequest a line or frame, read and written in bounded memory."""

from podtrail.recording.compressed import is_compressed
from podtrail.recording.decoder import Decoder
from podtrail.recording.foreign import is_document
from podtrail.recording.form import RecordingForm
from podtrail.recording.reader import read_recording
from podtrail.recording.record import LARGEST, Damage, Position, Record
from podtrail.recording.writer import RecordingWriter

__all__ = [
    "LARGEST",
    "Damage",
    "Decoder",
    "Position",
    "Record",
    "RecordingForm",
    "RecordingWriter",
    "is_compressed",
    "is_document",
    "read_recording",
]
