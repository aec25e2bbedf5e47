"""How sure a share is that was seen in so many cases."""

import math

# The two-sided 95 % point of the normal distribution.
Z = 1.96


def wilson(successes: int, cases: int) -> tuple[float, float]:
    """The bounds of Wilson's 95 % interval of a share; of no cases, everything is possible."""
    if cases == 0:
        return 0.0, 1.0
    share, z2 = successes / cases, Z * Z
    middle = (share + z2 / (2 * cases)) / (1 + z2 / cases)
    half = Z / (1 + z2 / cases) * math.sqrt(share * (1 - share) / cases + z2 / (4 * cases * cases))
    return max(0.0, middle - half), min(1.0, middle + half)
