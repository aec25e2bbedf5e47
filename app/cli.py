"""The command line: leasemq serve | migrate | openapi | pipeline."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from app.logs import configure_logs
from app.main import StartFailed, create_app, prepare_database
from app.metrics import MULTIPROCESS_DIRECTORY
from app.pipeline.commands import add_commands
from app.pipeline.errors import PipelineError, PipelineStopped
from app.settings import LogFormat, Settings, SettingsError, unknown_variables, variable_names

FAILED = 1
USAGE_ERROR = 2
GRACEFUL_SECONDS = 35
WORKER_SECONDS = 30
# Longer than proxies keep an idle connection: it must not be closed here while a request is on its way.
KEEP_ALIVE_SECONDS = 75

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; what a user can put right is told in one line, with exit code 2, what stopped later with 1."""
    options = _parser().parse_args(arguments)
    try:
        _set_variables(options)
        settings = Settings.from_environment()
        configure_logs(settings.log_level, as_json=settings.log_format is LogFormat.JSON)
        _warn_of_unknown_variables()
        return int(options.run(settings, options))
    except (StartFailed, SettingsError, PipelineError) as error:
        print(f"leasemq: {error}", file=sys.stderr)
        return USAGE_ERROR
    except PipelineStopped as error:
        print(f"leasemq: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130


def serve(settings: Settings, options: argparse.Namespace) -> int:
    _refuse_open_bind(settings)
    asyncio.run(prepare_database(settings, change=settings.auto_migrate))
    # The server raises the signal that ended it once more: an end that was asked for is no failure.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with tempfile.TemporaryDirectory(prefix="leasemq-metrics-") as directory:
        if settings.workers > 1:
            os.environ[MULTIPROCESS_DIRECTORY] = directory
        uvicorn.run(
            "app.main:create_app_from_environment",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            loop="uvloop",
            http="httptools",
            access_log=False,
            server_header=False,
            # Nobody here asks where a caller is from.
            proxy_headers=False,
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
            # A worker that starts on a busy machine is slow, not dead.
            timeout_worker_healthcheck=WORKER_SECONDS,
        )
    return 0


def migrate(settings: Settings, options: argparse.Namespace) -> int:
    asyncio.run(prepare_database(settings, change=True))
    return 0


def openapi(settings: Settings, options: argparse.Namespace) -> int:
    """Writes the OpenAPI document, or compares a file with it."""
    document = json.dumps(create_app(settings).openapi(), indent=2, ensure_ascii=False) + "\n"
    if options.check is not None:
        return _compare(options.check, document)
    if options.output is None:
        sys.stdout.write(document)
    else:
        options.output.write_text(document, encoding="utf-8")
    return 0


def _compare(path: Path, document: str) -> int:
    if path.is_file() and path.read_text(encoding="utf-8") == document:
        return 0
    print(f"leasemq: {path} is out of step: run `leasemq openapi --output {path}`", file=sys.stderr)
    return FAILED


def _refuse_open_bind(settings: Settings) -> None:
    if not settings.insecure and not _is_loopback(settings.host):
        raise StartFailed(
            f"There are no keys yet, so anybody who can reach {settings.host} could use the queue."
            " Bind to 127.0.0.1, or say MQ_INSECURE=true if that is what you want."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _warn_of_unknown_variables() -> None:
    for name in unknown_variables():
        logger.warning("%s is not a setting", name)


def _set_variables(options: argparse.Namespace) -> None:
    """Options are variables too, so that every server process sees them."""
    for name, variable in variable_names().items():
        value = getattr(options, name, None)
        if value is not None:
            os.environ[variable] = str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="leasemq", description="A durable, leased task queue as an HTTP service.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serving = commands.add_parser("serve", help="run the service")
    serving.add_argument("--host", help="address to bind to (MQ_HOST)")
    serving.add_argument("--port", type=int, help="port to bind to (MQ_PORT)")
    serving.add_argument("--workers", type=int, help="server processes (MQ_WORKERS)")
    _add_database_url(serving)
    serving.set_defaults(run=serve)
    migrating = commands.add_parser("migrate", help="bring the database's schema up to date")
    _add_database_url(migrating)
    migrating.set_defaults(run=migrate)
    documenting = commands.add_parser("openapi", help="print the OpenAPI document")
    documenting.add_argument("--output", type=Path, help="write it to this file")
    documenting.add_argument("--check", type=Path, help="fail unless this file is the same")
    documenting.set_defaults(run=openapi)
    add_commands(commands.add_parser("pipeline", help="archive, report, replay and load with Spark"))
    return parser


def _add_database_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database-url", help="the store (MQ_DATABASE_URL)")


if __name__ == "__main__":
    sys.exit(main())
