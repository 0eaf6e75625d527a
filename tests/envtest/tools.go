//go:build tools

// Package envtest pins the control plane that the tests marked control_plane run against; build.sh builds it.
package envtest

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
