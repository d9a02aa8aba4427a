"""verda-cloud-provider: rents and returns GPU machines at Verda Cloud for a Kubernetes Cluster Autoscaler."""
