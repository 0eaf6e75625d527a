"""What serves beside the pipelines: health for probes, and the pages that show the story of a Pod."""
