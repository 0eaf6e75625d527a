#!/usr/bin/env bash
# Builds what node.py starts: beside tests/envtest's control plane a kubelet and kube-controller-manager of the same release,
# containerd, CNI's plugins, runc, and the program that runs in the tests' containers.
#   build.sh [folder]     default: ${XDG_CACHE_HOME:-~/.cache}/podtrail/node-1.37.1, where the tests look
# What is there already is kept. Kubernetes comes from the modules that tests/envtest/go.mod pins, so that both share
# what is compiled; containerd and the plugins from their own modules.
set -euo pipefail
cd "$(dirname "$0")/../envtest"
containerd=v2.4.2 plugins=v1.9.1

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/node-1.37.1}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
part=$(mktemp -d "$folder/.part.XXXXXX") # binaries are moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT

# No debug information: -s would drop it, but making it takes a twentieth of the time.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

# make COMMAND NAME...: the command gets the names that are missing, and leaves those programs in $part.
make() {
  local command=$1 name missing=() started=$SECONDS
  shift
  for name in "$@"; do
    [ -x "$folder/$name" ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "node: building ${missing[*]}" >&2
  "$command" "${missing[@]}"
  (cd "$part" && mv "${missing[@]}" "$folder/")
  echo "node: took $((SECONDS - started)) s" >&2
}
# The control plane may have been built for its own tests.
of_envtest() {
  local from=${KUBEBUILDER_ASSETS:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/envtest-1.37.1} name
  ./build.sh "$from"
  for name in "$@"; do
    ln "$from/$name" "$part/$name" 2>/dev/null || cp "$from/$name" "$part/$name"
  done
}
of_kubernetes() { go build -ldflags "$flags" -o "$part/" "${@/#/k8s.io/kubernetes/cmd/}"; }
# These are of modules that go.mod does not have, so they are built outside of its folder.
of_containerd() {
  local of=github.com/containerd/containerd/v2 packages
  packages=("${@/#/$of/cmd/}")
  (cd "$part" && GOBIN=$part go install -ldflags "-s -w -X $of/version.Version=$containerd" "${packages[@]/%/@$containerd}")
}
of_plugins() {
  local packages=("$@")
  packages=("${packages[@]/#bridge/main/bridge}")
  packages=("${packages[@]/#host-local/ipam/host-local}")
  packages=("${packages[@]/#/github.com/containernetworking/plugins/plugins/}")
  (cd "$part" && GOBIN=$part go install -ldflags "-s -w" "${packages[@]/%/@$plugins}")
}
# Every sandbox has a seccomp profile, and runc links libseccomp by C: a finished one, of this machine or of Debian.
a_runc() {
  if command -v runc >/dev/null; then
    cp "$(command -v runc)" "$part/runc"
  else
    (cd "$part" && { apt-get download -qq runc || { apt-get update -qq && apt-get download -qq runc; }; } >&2 &&
      dpkg -x runc_*.deb . && mv usr/sbin/runc runc)
  fi
}
an_actor() { go build -ldflags "-s -w" -o "$part/actor" ../node/actor/main.go; }

make of_envtest etcd kube-apiserver kube-scheduler kubectl
make of_kubernetes kube-controller-manager kubelet
make of_containerd containerd containerd-shim-runc-v2 ctr
make of_plugins bridge host-local
make a_runc runc
make an_actor actor
