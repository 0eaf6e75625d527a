"""What several plugins need: domains and Pods counted in them, volumes and claims, resources and their scores."""
