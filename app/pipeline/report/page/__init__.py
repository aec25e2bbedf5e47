"""The page: everything on it is drawn here, from figures that are computed elsewhere; it needs nothing from outside."""
