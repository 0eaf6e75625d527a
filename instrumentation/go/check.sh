#!/bin/sh
# go vet and go test of the modules here, for Kubernetes 1.37, and whether the list of linked modules is current; with a minor release as argument for that one.
set -eu
cd "$(dirname "$0")"
minor=${1:-1.37}
# As build.sh, so that what is compiled is compiled once.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
if [ "$minor" != 1.37 ]; then
    cd kubescheduler
    GOFLAGS="$GOFLAGS -modfile=go-$minor.mod"
    tags=kube$(echo "$minor" | tr -d .)
    go vet -tags "$tags" ./...
    go test -tags "$tags" ./...
    exit
fi
python3 ../../tools/third_party.py --check
for module in tracecontext kubescheduler reconcile; do
    [ -f "$module/go.mod" ] || continue
    (cd "$module" && go vet ./... && go test ./...)
done
