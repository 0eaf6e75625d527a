#!/usr/bin/env bash
# Builds what tries charts/podtrail: helm 3 and 4 and kubeconform, from the modules of go.mod, and schemas of Kubernetes.
#   build.sh [folder]     default: ${XDG_CACHE_HOME:-~/.cache}/podtrail/helm, where the tests look
# What is there already in the versions of go.mod is kept.
set -euo pipefail
cd "$(dirname "$0")"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/helm}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
part=$(mktemp -d "$folder/.part.XXXXXX") # binaries are moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT

# No debug information: -s would drop it, but making it takes a twentieth of the time.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
# Without a cluster helm 3 takes Kubernetes to be of this minor release; helm 4 reads it in its own module's list.
minor=$(go list -m -f '{{.Version}}' k8s.io/client-go | cut -d. -f2)
kubernetes="-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor"
kubernetes+=" -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=$minor"
# build NAME PACKAGE MODULE VARIABLE: the variable is the version that the program is to name.
build() {
  local version
  version=$(go list -m -f '{{.Version}}' "$3")
  [ "$(cat "$folder/$1.version" 2>/dev/null || true)" != "$version" ] || return 0
  echo "helm: building $1 $version" >&2
  go build -ldflags "-s -w -X $4=$version $kubernetes" -o "$part/$1" "$2"
  mv "$part/$1" "$folder/$1"
  echo "$version" >"$folder/$1.version"
}
build helm3 helm.sh/helm/v3/cmd/helm helm.sh/helm/v3 helm.sh/helm/v3/internal/version.version
build helm4 helm.sh/helm/v4/cmd/helm helm.sh/helm/v4 helm.sh/helm/v4/internal/version.version
build kubeconform github.com/yannh/kubeconform/cmd/kubeconform github.com/yannh/kubeconform main.version

# The schemas of the three newest minor releases are in Kubernetes' own module.
for version in v1.35.8 v1.36.5 v1.37.2; do
  [ ! -e "$folder/schemas/$version" ] || continue
  echo "helm: schemas of Kubernetes $version" >&2
  module=$(cd / && go mod download -json "k8s.io/kubernetes@$version" | sed -nE 's/^\t"Dir": "(.*)",?$/\1/p')
  python3 schemas.py "$module/api/openapi-spec/swagger.json" "$part/schemas"
  mkdir -p "$folder/schemas"
  mv "$part/schemas" "$folder/schemas/$version"
done

# crds MODULE VERSION FILE...: the custom resources that the chart makes, from the projects that define them.
crds() {
  local module
  [ -e "$folder/crds/$(basename "${!#}")" ] && return
  echo "helm: custom resources of $1 $2" >&2
  module=$(cd / && go mod download -json "$1@$2" | sed -nE 's/^\t"Dir": "(.*)",?$/\1/p')
  shift 2
  mkdir -p "$part/crds" "$folder/crds"
  for name in "$@"; do install -m 0644 "$module/$name" "$part/crds/"; done
  mv "$part/crds"/* "$folder/crds/"
}
crds github.com/prometheus-operator/prometheus-operator v0.85.0 \
  example/prometheus-operator-crd/monitoring.coreos.com_{prometheusrules,servicemonitors}.yaml
crds github.com/cert-manager/cert-manager v1.21.2 deploy/crds/cert-manager.io_{certificates,issuers}.yaml
