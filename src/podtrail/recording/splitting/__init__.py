"""Streams of bytes parted into requests: lines of JSON, or frames of protobuf."""
