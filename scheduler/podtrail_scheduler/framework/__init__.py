"""The Scheduling Framework: extension points, what plugins answer, and the runtime that makes the spans."""
