"""The hot routes without a database, and a bare application to hold them against."""
