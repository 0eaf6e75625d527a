#!/usr/bin/env bash
# Builds the kube-schedulers that `./dev versions` runs, one after the other, from the modules of the folders here.
#   build.sh [MINOR ...]     default: all folders, and 1.37 with the control plane of tests/envtest
# They are kept as ${XDG_CACHE_HOME:-~/.cache}/podtrail/kube-scheduler-VERSION; a program that is there is not built again.
set -euo pipefail
cd "$(dirname "$0")"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/podtrail
mkdir -p "$folder"

# The same flags as tests/envtest/build.sh, so that packages in common are compiled once.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
build() ( # build MINOR
  cd "$1"
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  program=$folder/kube-scheduler-${version#v}
  [ ! -x "$program" ] || exit 0
  IFS=. read -r major minor _ <<<"${version#v}"
  flags="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  done
  echo "versions: building kube-scheduler $version" >&2
  trap 'rm -f "$program.part"' EXIT
  nice go build -ldflags "$flags" -o "$program.part" k8s.io/kubernetes/cmd/kube-scheduler
  mv "$program.part" "$program"
)

[ $# -gt 0 ] || { ../../envtest/build.sh && set -- */; }
for minor; do build "$minor"; done
