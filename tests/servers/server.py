"""What the tests ask of a database server."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from tests.servers.process import ServerProcess


@dataclass(frozen=True)
class Unavailable:
    """There is no such server here; `reason` says in one line why, and how to get one."""

    reason: str


class Server(ABC):
    """A database server that makes and drops databases, and goes down and comes back when a test asks."""

    name: ClassVar[str]

    def __init__(self, url: str, process: ServerProcess | None, clean_up: Callable[[], None] = lambda: None) -> None:
        self._url = urlsplit(url)
        self._process = process
        self._clean_up = clean_up

    @property
    def controllable(self) -> bool:
        """Whether a test may stop, kill and pause the server; not if it is somebody else's."""
        return self._process is not None

    def create_database(self, name: str) -> str:
        """Make an empty database with the server's defaults and return its URL."""
        self._execute(f"CREATE DATABASE {name}")
        return self._url._replace(path=f"/{name}").geturl()

    @abstractmethod
    def drop_database(self, name: str) -> None:
        """Drop the database, whoever is still connected to it."""

    @abstractmethod
    def _execute(self, statement: str) -> None:
        """Run one statement as the administrator, outside any transaction."""

    def start(self) -> None:
        """Start the server again, on the same port and data, and return when it takes connections."""
        self._controlled().start()

    def stop(self) -> None:
        """Shut the server down in good order."""
        self._controlled().stop()

    def kill(self) -> None:
        """End the server without warning; its data stay."""
        self._controlled().kill()

    def pause(self) -> None:
        """Freeze the server, so that connections stay open and nothing answers."""
        self._controlled().pause()

    def resume(self) -> None:
        """Let a paused server go on."""
        self._controlled().resume()

    def close(self) -> None:
        """End the server and remove its data; somebody else's server is left alone."""
        if self._process is not None:
            self._process.kill()
        self._clean_up()

    def _controlled(self) -> ServerProcess:
        if self._process is None:
            raise RuntimeError(f"this {self.name} server is not ours to control")
        return self._process
