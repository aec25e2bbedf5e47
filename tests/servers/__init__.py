"""Real database servers for the tests, each on its own loopback port."""

from tests.servers.mysql import start_mysql
from tests.servers.postgresql import start_postgresql
from tests.servers.server import Server, Unavailable

__all__ = ["Server", "Unavailable", "start_mysql", "start_postgresql"]
