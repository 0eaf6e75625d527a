"""Servers and clients of OTLP over gRPC and HTTP, for requests as raw bytes."""
