"""Arrival-stamped recordings: one ExportTraceServiceRequest a line or frame, read and written in bounded memory."""

from podtrail.recording.compressed import Gap, growing_pieces, is_compressed, pieces
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
    "Gap",
    "OtherSignal",
    "Record",
    "RecordingDecoder",
    "RecordingForm",
    "RecordingPosition",
    "RecordingProgress",
    "RecordingWriter",
    "growing_pieces",
    "is_compressed",
    "is_document",
    "pieces",
    "read_recording",
    "recording_files",
]
