#!/bin/sh
# Builds podtrail-kube-scheduler for one minor release of Kubernetes.
#   build.sh [minor] [folder]     default: 1.37, ${XDG_CACHE_HOME:-~/.cache}/podtrail/kube-scheduler-traced-MINOR,
#                                 where the tests look
# A binary that is newer than all sources is kept.
set -eu
cd "$(dirname "$0")/kubescheduler"
minor=${1:-1.37}
folder=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/kube-scheduler-traced-$minor}
case $minor in
1.37) modfile=go.mod tags= ;;
1.36) modfile=go-1.36.mod tags=kube136 ;;
1.35) modfile=go-1.35.mod tags=kube135 ;;
*)
    echo "build.sh: no go.mod for $minor; docs/kube-scheduler.md explains how to add one" >&2
    exit 2
    ;;
esac
mkdir -p "$folder"
binary=$folder/podtrail-kube-scheduler
if [ -x "$binary" ] && [ -z "$(find . ../tracecontext -newer "$binary" \( -name '*.go' -o -name '*.mod' \) ! -name '*_test.go')" ]; then
    exit 0
fi

# As in tests/envtest/build.sh: without debug information, and with the version that the binary tells.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -modfile=$modfile -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=${minor%.*} -X $package.gitMinor=${minor#*.}"
done
echo "podtrail-kube-scheduler: building $version" >&2
trap 'rm -f "$binary.part"' EXIT
go build -tags "$tags" -ldflags "$flags" -o "$binary.part" ./cmd/podtrail-kube-scheduler
mv "$binary.part" "$binary"
