"""What talks to a Kubernetes API server: requests, list and watch, leader election, throttling.

The names are client-go's. Knows neither pipeline nor scheduler nor spans. Needs the extra `podtrail[kubernetes]`;
nothing of that is imported before an API server's address is read.
"""
