"""What the queue does for its callers, over whatever store."""
