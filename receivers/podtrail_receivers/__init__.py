"""Where spans come from: receivers take them in, hand them to the pipelines, and answer whoever sent them."""
