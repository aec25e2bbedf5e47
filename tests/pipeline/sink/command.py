"""Commands of `leasemq pipeline` in this process: it has the one Spark session."""

import argparse
from pathlib import Path

from app.pipeline.commands import add_commands
from app.settings import Settings


def run_command(*arguments: str | Path) -> int:
    """The exit code of a command; what it refuses is raised."""
    parser = argparse.ArgumentParser()
    add_commands(parser)
    options = parser.parse_args([str(argument) for argument in arguments])
    return int(options.run(Settings.from_environment(), options))
