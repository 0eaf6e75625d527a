"""Arrival-stamped recordings: one ExportTraceServiceRequest a line or frame, read and written in bounded memory."""

from podtrail.recording.compressed import is_compressed
from podtrail.recording.decoder import RecordingDecoder
from podtrail.recording.foreign import is_document
from podtrail.recording.form import RecordingForm
from podtrail.recording.reader import read_recording, recording_files
from podtrail.recording.record import Damage, OtherSignal, Record, RecordingPosition, RecordingProgress
from podtrail.recording.splitting.splitter import LARGEST
from podtrail.recording.writer import RecordingWriter

__all__ = [
    "LARGEST",
    "Damage",
    "OtherSignal",
    "Record",
    "RecordingDecoder",
    "RecordingForm",
    "RecordingPosition",
    "RecordingProgress",
    "RecordingWriter",
    "is_compressed",
    "is_document",
    "read_recording",
    "recording_files",
]
