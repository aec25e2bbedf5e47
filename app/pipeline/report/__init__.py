"""What the queue did, as figures: every figure is a pure transform of the lake's tables, and one page shows them."""
