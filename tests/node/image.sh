#!/usr/bin/env bash
# Builds the image of podtrail that test_deployed.py runs on its node, as root on Debian or Ubuntu. It installs buildah and
# debootstrap, if they are missing, so the tests never call it.
#   image.sh          builds the image if the files it is made of have changed
#   image.sh --path   prints where the image of these files is, or would be
# Exit code 75: .ci/image found no Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/podtrail
name=docker.io/library/podtrail:0.1.0 # containerd's name for the podtrail:0.1.0 of the manifests

inputs=(docker/Dockerfile docker/slim.py docker/sidecar.yaml locks pyproject.toml .ci/image)
mapfile -t copied < <(sed -nE 's/^COPY ([[:alnum:]_.\/-]+) \1$/\1/p' docker/Dockerfile)
digest=$(git ls-files -z -- "${inputs[@]}" "${copied[@]}" | sort -z | { xargs -0 sha256sum 2>/dev/null || true; } | sha256sum | cut -c -16)
archive=$cache/podtrail-$digest.tar
if [ "${1:-}" = --path ]; then
  echo "$archive"
  exit
fi
[ ! -e "$archive" ] || exit 0
if [ "$(id -u)" != 0 ] || [ ! -e /etc/debian_version ]; then
  echo "image: needs root on Debian or Ubuntu, for debootstrap and buildah" >&2
  exit 1
fi
started=$SECONDS
echo "image: building podtrail" >&2
mkdir -p "$cache"
part=$archive.part.$$
trap 'rm -f "$part"' EXIT
.ci/image "$part" "$name"
mv "$part" "$archive"
# One is kept for another checkout or branch.
find "$cache" -maxdepth 1 -name 'podtrail-*.tar' -printf '%T@ %p\n' | sort -rn | tail -n +3 | cut -d' ' -f2- | xargs -r rm -f
echo "image: took $((SECONDS - started)) s" >&2
