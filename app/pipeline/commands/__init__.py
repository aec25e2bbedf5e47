"""The commands of `leasemq pipeline`. Their options are read without Spark; what they do is imported when they run."""

import argparse


def add_commands(pipeline: argparse.ArgumentParser) -> None:
    """Adds every command; each sets `run`, which takes the settings and the options and returns the exit code."""
    pipeline.add_subparsers(required=True, metavar="COMMAND")
