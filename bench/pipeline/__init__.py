"""The pipeline's benchmark: each job next to the plainest way to the same end, in one run, as ratios."""
