"""Reports for a ticket: a Pod's story or an incident as one HTML file, or as Markdown; traces for other programs."""
