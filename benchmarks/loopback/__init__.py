"""Processes around a pipeline under measurement: who sends, who takes what comes out, and what it is set against."""
