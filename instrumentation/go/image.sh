#!/usr/bin/env bash
# Builds the image of podtrail-kube-scheduler for one minor release of Kubernetes, podtrail-kube-scheduler:vMAJOR.MINOR.PATCH.
#   image.sh [minor] [archive]        default: 1.37, ${XDG_CACHE_HOME:-~/.cache}/podtrail/kube-scheduler-traced-MINOR-DIGEST.tar,
#                                     where the tests look; kept if the files it is made of have not changed
#   image.sh --path [minor]           prints where that archive of these files is, or would be
#   image.sh --name [minor]           prints the image's name
#   image.sh --context minor folder   only fills a folder for `docker build folder` or the like
# It needs Go and python3, and for archives buildah, which works without a daemon and here without a registry.
set -euo pipefail
what=build
case ${1:-} in
--path | --name | --context)
  what=${1#--}
  shift
  ;;
esac
minor=${1:-1.37}
given=${2:-}
[ -z "$given" ] || given=$(realpath -m "$given")
cd "$(dirname "$0")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/podtrail
modfile=instrumentation/go/kubescheduler/go-$minor.mod
[ -f "$modfile" ] || modfile=instrumentation/go/kubescheduler/go.mod
version=$(sed -nE 's/^\s*k8s\.io\/kubernetes (v[0-9.]+)$/\1/p' "$modfile" | head -n 1)
if [ "${version%.*}" != "v$minor" ]; then
  echo "image.sh: no go.mod for $minor; docs/kube-scheduler.md explains how to add one" >&2
  exit 2
fi
name=podtrail-kube-scheduler:$version

inputs=(docker/kube-scheduler.Dockerfile tools/third_party.py LICENSE
  instrumentation/go/build.sh instrumentation/go/image.sh instrumentation/go/kubescheduler instrumentation/go/tracecontext)
digest=$(git ls-files -z -- "${inputs[@]}" | grep -zv '_test\.go$' | sort -z |
  { xargs -0 sha256sum 2>/dev/null || true; } | sha256sum | cut -c -16)
archive=${given:-$cache/kube-scheduler-traced-$minor-$digest.tar}

fill() {
  mkdir -p "$1"
  instrumentation/go/build.sh "$minor" "$1" # not the cache's binary: that may be another checkout's
  mv "$1/podtrail-kube-scheduler" "$1/kube-scheduler"
  python3 tools/third_party.py --notices "$minor" "$1/NOTICES.txt"
  sed "s/^ARG VERSION$/ARG VERSION=$version/" docker/kube-scheduler.Dockerfile >"$1/Dockerfile"
}

case $what in
path) echo "$archive" ;;
name) echo "$name" ;;
context) fill "${given:?image.sh --context wants a minor release and a folder}" ;;
build)
  [ -n "$given" ] || [ ! -e "$archive" ] || exit 0
  if ! command -v buildah >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get update && apt-get install -y --no-install-recommends buildah) >/dev/null ||
      { echo "image.sh: needs buildah; --context and docker build do without it" >&2; exit 1; }
  fi
  started=$SECONDS
  mkdir -p "$cache" "$(dirname "$archive")"
  context=$(mktemp -d "$cache/kube-scheduler.XXXXXX")
  trap 'rm -rf "$context" "$archive.part"' EXIT
  fill "$context"
  # overlayfs can't lie on itself, as in a container.
  driver=overlay
  if [ "$(stat -f -c %T "$cache")" = overlayfs ]; then driver=vfs; fi
  store=(buildah --storage-driver "$driver" --root "$cache/image" --runroot "$cache/image.run")
  full=docker.io/library/$name # as nodes know it
  BUILDAH_ISOLATION=chroot "${store[@]}" bud -q --pull-never -t "$full" "$context" >/dev/null
  rm -f "$archive.part"
  "${store[@]}" push -q "$full" "oci-archive:$archive.part:$full"
  "${store[@]}" rmi "$full" >/dev/null
  mv "$archive.part" "$archive"
  # One is kept for another checkout or branch.
  find "$cache" -maxdepth 1 -name "kube-scheduler-traced-$minor-*.tar" -printf '%T@ %p\n' | sort -rn | tail -n +3 | cut -d' ' -f2- | xargs -r rm -f
  echo "image.sh: $name took $((SECONDS - started)) s" >&2
  ;;
esac
