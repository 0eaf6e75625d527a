"""The scheduler on a real cluster: informers, requests, plugin threads, and the service that runs on them."""
