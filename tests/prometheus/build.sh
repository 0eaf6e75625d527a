#!/usr/bin/env bash
# Builds Prometheus and promtool, which try docker/monitoring/, from the module of go.mod.
#   build.sh [folder]     default: ~/.cache/podtrail/prometheus, where the tests look
# What is there already is kept. From an empty cache it takes a few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/prometheus}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false"
build() {
  if [ -x "$folder/$1" ]; then return; fi
  echo "prometheus: building $1" >&2
  # Of the ways to find targets only those by file and by address: the clouds' are most of what is to be compiled.
  go build -tags remove_all_sd -ldflags "-s -w" -o "$folder/$1.part" "github.com/prometheus/prometheus/cmd/$1"
  mv "$folder/$1.part" "$folder/$1" # whole or not at all, also when this is interrupted
}
build promtool
build prometheus
