//go:build kube136

package kubescheduler

// KubernetesMinor is the minor release that this build contains.
const KubernetesMinor = "1.36"
