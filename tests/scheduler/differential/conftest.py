"""The binaries of the real control plane, for the one test that asks it."""

from tests.kubernetes.conftest import kubernetes_binaries

__all__ = ["kubernetes_binaries"]
