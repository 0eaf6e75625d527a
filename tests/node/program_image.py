"""Container images of one program, without a registry or a daemon."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_MEDIA = "application/vnd.oci.image"


def write_image(archive: Path, name: str, program: Path, *, at: str = "", arguments: Sequence[str] = ()) -> Path:
    """Writes an OCI archive (https://github.com/opencontainers/image-spec) of an image with that program alone in it.

    Args:
        archive: Where to.
        name: The image's, in full.
        program: A static one.
        at: Its path in the image.
        arguments: What it is called with if the Pod says nothing.
    """
    place = at or f"/{program.name}"
    with tarfile.open(archive, "w") as out:
        layer = _layer(place, program.read_bytes())
        config = {
            "architecture": _MACHINES[os.uname().machine],
            "os": "linux",
            # The CRI tells images apart by their digest alone: of two with one program each has a name of its own.
            "config": {"Entrypoint": [place], "Cmd": list(arguments), "Labels": {"name": name}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _blob(out, json.dumps(config).encode(), f"{_MEDIA}.config.v1+json"),
            "layers": [_blob(out, layer, f"{_MEDIA}.layer.v1.tar")],
        }
        described = _blob(out, json.dumps(manifest).encode(), manifest["mediaType"])
        named = described | {"annotations": {"io.containerd.image.name": name}}
        _add(out, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
        _add(out, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    return archive


def _layer(place: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as layer:
        _add(layer, place.lstrip("/"), content, 0o755)
    return packed.getvalue()


def _blob(out: tarfile.TarFile, content: bytes, media: object) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    _add(out, f"blobs/sha256/{digest}", content)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}


def _add(out: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), mode
    out.addfile(about, io.BytesIO(content))
