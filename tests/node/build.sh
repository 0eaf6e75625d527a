#!/usr/bin/env bash
# Builds what node.py starts: beside tests/envtest's control plane a kubelet, kube-controller-manager and kubectl of the
# same release, containerd, CNI's plugins, runc, and the program that runs in the tests' containers.
#   build.sh [folder]     default: ~/.cache/podtrail/node-1.37.1, where the tests look
# What is there already is kept. Kubernetes comes from the modules that tests/envtest/go.mod pins, so that both share
# what is compiled; containerd and the plugins from their own modules. Each says how long it took.
set -euo pipefail
cd "$(dirname "$0")/../envtest"
containerd=v2.4.2 plugins=v1.9.1

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/node-1.37.1}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
part=$folder/.part # what is built is moved whole or not at all, also when this is interrupted
rm -rf "$part"
mkdir "$part"
trap 'rm -rf "$part"' EXIT

export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

# make NAME COMMAND...: the command leaves NAME in $part.
make() {
  if [ -x "$folder/$1" ]; then return; fi
  local started=$SECONDS
  echo "node: building $1" >&2
  "${@:2}"
  mv "$part/$1" "$folder/$1"
  echo "node: $1 took $((SECONDS - started)) s" >&2
}
of_kubernetes() { go build -ldflags "$flags" -o "$part/$1" "k8s.io/kubernetes/cmd/$1"; }
of_module() { GOBIN=$part go install -ldflags "$1" "$2"; }
# Every sandbox has a seccomp profile, and runc links libseccomp by C: a finished one, of this machine or of Debian.
a_runc() {
  if command -v runc >/dev/null; then
    cp "$(command -v runc)" "$part/runc"
  else
    (cd "$part" && { apt-get download -qq runc || { apt-get update -qq && apt-get download -qq runc; }; } >&2 &&
      dpkg -x runc_*.deb . && mv usr/sbin/runc runc)
  fi
}

# The control plane may have been built for its own tests.
control_plane=${KUBEBUILDER_ASSETS:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/envtest-1.37.1}
missing=""
for name in etcd kube-apiserver kube-scheduler; do
  [ -x "$folder/$name" ] || missing=yes
done
if [ -n "$missing" ]; then
  ./build.sh "$control_plane"
  for name in etcd kube-apiserver kube-scheduler; do
    [ -x "$folder/$name" ] || ln "$control_plane/$name" "$folder/$name" 2>/dev/null ||
      make "$name" cp "$control_plane/$name" "$part/$name"
  done
fi
for name in kube-controller-manager kubectl kubelet; do
  make "$name" of_kubernetes "$name"
done
# Outside of a module, for -mod=readonly and this go.mod are not for them.
cd "$part"
for name in containerd containerd-shim-runc-v2 ctr; do
  make "$name" of_module "-s -w -X github.com/containerd/containerd/v2/version.Version=$containerd" \
    "github.com/containerd/containerd/v2/cmd/$name@$containerd"
done
make bridge of_module "-s -w" "github.com/containernetworking/plugins/plugins/main/bridge@$plugins"
make host-local of_module "-s -w" "github.com/containernetworking/plugins/plugins/ipam/host-local@$plugins"
make runc a_runc
cd "$OLDPWD"
make actor go build -ldflags "-s -w" -o "$part/actor" ../node/actor/main.go
