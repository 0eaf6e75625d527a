#!/usr/bin/env bash
# Builds what control_plane.py starts (etcd, kube-apiserver, kube-scheduler), and kubectl, from the modules of go.mod.
#   build.sh [folder]     default: ${XDG_CACHE_HOME:-~/.cache}/podtrail/envtest-1.37.1, where the tests look
# What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/envtest-1.37.1}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
part=$(mktemp -d "$folder/.part.XXXXXX") # binaries are moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT

# No debug information: -s would drop it, but making it takes a twentieth of the time.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
# The version that the binaries tell.
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

packages=()
build() { [ -x "$folder/$1" ] || packages+=("$2"); }
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
build kubectl k8s.io/kubernetes/cmd/kubectl
[ ${#packages[@]} -gt 0 ] || exit 0

echo "envtest: building ${packages[*]}" >&2
go build -ldflags "$flags" -o "$part/" "${packages[@]}"
[ ! -e "$part/server" ] || mv "$part/server" "$part/etcd" # Go names it after its folder
mv "$part"/* "$folder/"
