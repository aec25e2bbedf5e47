"""The commands of `leasemq pipeline`. Their options are read without Spark; what they do is imported when they run."""

import argparse

from app.pipeline.commands.archive import add_archive
from app.pipeline.commands.load import add_load
from app.pipeline.commands.options import with_spark
from app.pipeline.commands.package import add_package
from app.pipeline.commands.replay import add_replay
from app.pipeline.commands.report import add_report


def add_commands(pipeline: argparse.ArgumentParser) -> None:
    """Adds every command; each sets `run`, which takes the settings and the options and returns the exit code."""
    commands = pipeline.add_subparsers(required=True, metavar="COMMAND")
    add_load(commands)
    add_replay(commands)
    add_archive(commands)
    add_report(commands)
    add_package(commands)
    for command in commands.choices.values():
        command.set_defaults(run=with_spark(command.get_default("run")))
