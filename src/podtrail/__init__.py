"""podtrail: the pipeline that keeps the scheduling attempts worth keeping and tells the story of a Pod."""

__version__ = "0.1.0"
