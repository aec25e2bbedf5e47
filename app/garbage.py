"""The garbage collector, told what a server is like."""

import gc

# A request makes hundreds of objects, hardly any of them in a cycle: look seldom.
OBJECTS_BEFORE_A_LOOK = 50_000


def spare_what_stays() -> None:
    """All that is there now, the code above all, stays as long as the process: it is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BEFORE_A_LOOK, *gc.get_threshold()[1:])
