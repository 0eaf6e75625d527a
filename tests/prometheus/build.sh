#!/usr/bin/env bash
# Builds Prometheus and promtool, which try docker/monitoring/, from the module of go.mod.
#   build.sh [folder]     default: ${XDG_CACHE_HOME:-~/.cache}/podtrail/prometheus, where the tests look
# What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/prometheus}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
part=$(mktemp -d "$folder/.part.XXXXXX") # binaries are moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT

packages=()
build() { [ -x "$folder/$1" ] || packages+=("github.com/prometheus/prometheus/cmd/$1"); }
build promtool
build prometheus
[ ${#packages[@]} -gt 0 ] || exit 0

# No debug information: -s would drop it, but making it takes a twentieth of the time.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
echo "prometheus: building ${packages[*]}" >&2
# Of the ways to find targets only those by file and by address: the clouds' are most of what is to be compiled.
go build -tags remove_all_sd -ldflags "-s -w" -o "$part/" "${packages[@]}"
mv "$part"/* "$folder/"
