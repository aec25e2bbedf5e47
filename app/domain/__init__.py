"""What a task queue is, with no word of HTTP or SQL: this package imports nothing of the rest of the app."""
