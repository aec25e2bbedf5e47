"""Whether the one who asked is still there."""

from starlette.types import Receive


def is_disconnected(receive: Receive) -> bool:
    """Whether the caller has hung up, found out without waiting; its body must have been read.

    After the body the server has nothing to tell but the end of the connection. So a receive that does not answer at
    once says that the caller is there, and is given up.
    """
    receiving = receive()
    try:
        receiving.__await__().send(None)
    except StopIteration as answer:
        return bool(answer.value["type"] == "http.disconnect")
    finally:
        receiving.close()  # type: ignore[attr-defined]
    return False
