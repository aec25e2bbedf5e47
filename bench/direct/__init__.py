"""The limit: what the databases do when nobody speaks HTTP."""
