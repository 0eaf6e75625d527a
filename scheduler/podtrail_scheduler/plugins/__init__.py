"""The plugins, one module each, named as Kubernetes names them; `registry` has them by name."""
