"""How the queue is kept: one protocol, and an adapter for each SQL dialect behind it."""
