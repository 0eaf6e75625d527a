//go:build tools

// Package scheduler pins the kube-scheduler that ../build.sh builds.
package scheduler

import _ "k8s.io/kubernetes/cmd/kube-scheduler"
