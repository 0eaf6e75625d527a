"""API calls that the scheduler does not wait for (KEP-5229), and PreEnqueue rejections in Pod status (KEP-5501).

For one Pod there is at most one call on its way and one that waits. A new call replaces the one that waits, or is
merged with it, or is skipped, by what the two are worth; a call that would change nothing is not made.
"""
