"""The queue over HTTP: thin routes, and the only place that knows of statuses and JSON."""
