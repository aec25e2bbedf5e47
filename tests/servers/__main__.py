"""`python -m tests.servers`: run the servers and print the URL of an empty database in each, until Ctrl-C."""

import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.servers import Server, Unavailable, start_mysql, start_postgresql


def main() -> None:
    """Run both servers until interrupted or terminated, then leave nothing behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with ExitStack() as stack:
        try:
            for start in (start_postgresql, start_mysql):
                directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-"))
                _announce(start(Path(directory)), stack)
            signal.pause()
        except KeyboardInterrupt:
            return


def _announce(server: Server | Unavailable, stack: ExitStack) -> None:
    if isinstance(server, Unavailable):
        print(server.reason, file=sys.stderr)
        return
    stack.callback(server.close)
    print(server.create_database("leasemq"), flush=True)


if __name__ == "__main__":
    main()
