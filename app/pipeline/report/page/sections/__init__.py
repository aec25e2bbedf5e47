"""The sections of the page: each takes the figures and gives its markup."""
