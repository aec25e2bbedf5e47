"""beanstalkd and RabbitMQ as child processes on loopback ports, with messages that are on the disk when confirmed."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.scenario import CannotMeasureError
from tests.servers.debian import CannotInstallError, claim_workspace, suite_root
from tests.servers.ports import LOOPBACK, free_port, is_listening
from tests.servers.process import ServerProcess

RABBITMQ_CONFIGURATION = """
listeners.tcp.1 = 127.0.0.1:{amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = {http}
# There is no /proc below the root to ask for these.
vm_memory_calculation_strategy = allocated
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 1MB
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs; `url` is how its programs find it."""

    url: str


def start_beanstalkd(stack: ExitStack) -> Broker:
    """Start beanstalkd with a log that is synced at every write."""
    root, port = _root(), free_port()
    directory = _workspace(root, stack)
    inside = Path("/") / directory.relative_to(root)
    command = ["/usr/bin/beanstalkd", "-l", LOOPBACK, "-p", str(port), "-b", str(inside), "-f", "0"]
    _start(command, root, directory, port, stack)
    return Broker(f"beanstalk://{LOOPBACK}:{port}")


def start_rabbitmq(stack: ExitStack) -> Broker:
    """Start RabbitMQ with its management plugin, and the port mapper that it needs, which would outlive it."""
    root, amqp, http, mapper, distribution = _root(), free_port(), free_port(), free_port(), free_port()
    directory = _workspace(root, stack)
    inside = Path("/") / directory.relative_to(root)
    (directory / "rabbitmq.conf").write_text(RABBITMQ_CONFIGURATION.format(amqp=amqp, http=http))
    (directory / "plugins").write_text("[rabbitmq_management].")
    _start(["/usr/bin/epmd", "-address", LOOPBACK, "-port", str(mapper)], root, directory, mapper, stack)
    variables = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": inside, "ERL_EPMD_PORT": mapper,
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "RABBITMQ_NODENAME": f"bench{amqp}@localhost", "RABBITMQ_DIST_PORT": distribution,
        "RABBITMQ_MNESIA_BASE": f"{inside}/data", "RABBITMQ_LOG_BASE": f"{inside}/log", "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": f"{inside}/rabbitmq", "RABBITMQ_ENABLED_PLUGINS_FILE": f"{inside}/plugins",
        "RABBITMQ_PID_FILE": f"{inside}/pid",
    }  # fmt: skip
    settings = [f"{name}={value}" for name, value in variables.items()]
    _start(["/usr/bin/env", "-i", *settings, "/usr/lib/rabbitmq/bin/rabbitmq-server"], root, directory, http, stack)
    return Broker(f"amqp://guest:guest@{LOOPBACK}:{amqp}/?management={http}")


def _root() -> Path:
    try:
        return suite_root("brokers-stable", "stable", "beanstalkd,rabbitmq-server")
    except CannotInstallError as error:
        raise CannotMeasureError(str(error)) from error


def _workspace(root: Path, stack: ExitStack) -> Path:
    """A directory below the root for one broker, that goes with it."""
    workspace = claim_workspace(root)
    stack.callback(workspace.remove)
    return workspace.path


def _start(command: Sequence[str], root: Path, directory: Path, port: int, stack: ExitStack) -> None:
    log = directory / f"{Path(command[0]).name}-{port}.log"
    process = ServerProcess(command, log=log, is_ready=lambda: is_listening(port), root=root)
    try:
        process.start()
    except RuntimeError as error:
        raise CannotMeasureError(str(error)) from error
    stack.callback(process.kill)
