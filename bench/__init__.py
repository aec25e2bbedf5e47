"""How fast LeaseMQ is, next to the limit of its databases and next to its peers: `python -m bench`."""
