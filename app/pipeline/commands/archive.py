"""`leasemq pipeline archive`: what finished long ago goes from the database to a lake."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from app.pipeline.commands.options import add_database_url, add_master, duration
from app.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from app.pipeline.archive.archive import ArchiveRequest


def add_archive(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "archive", help="move finished tasks and their attempts to a lake of Parquet files, and prune the database"
    )
    parser.add_argument("--lake", required=True, metavar="DIR", help="a directory, or the URL of a Hadoop filesystem")
    parser.add_argument(
        "--older-than",
        required=True,
        type=duration,
        metavar="TIME",
        help="what finished so long ago: 90m, 12h, 7d, 2w; 1h at least",
    )
    parser.add_argument("--dead-letters", action="store_true", help="dead letters too")
    parser.add_argument("--dry-run", action="store_true", help="say what would move, and change nothing")
    add_database_url(parser)
    add_master(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, options: argparse.Namespace) -> int:
    from app.pipeline.archive.archive import ArchiveRequest, check_request  # noqa: PLC0415
    from app.pipeline.session import open_session  # noqa: PLC0415

    request = ArchiveRequest(settings.database_url, options.lake, options.older_than, options.dead_letters)
    # Before Spark starts, which takes a while.
    asyncio.run(check_request(request))
    spark = open_session("archive", options.master)
    for line in _rehearsed(spark, request) if options.dry_run else _archived(spark, request):
        print(line)
    return 0


def _rehearsed(spark: "SparkSession", request: "ArchiveRequest") -> list[str]:
    from app.pipeline.archive.archive import rehearse  # noqa: PLC0415

    counted = asyncio.run(rehearse(spark, request))
    return [f"{table}: {rows} rows would move" for table, rows in counted.items()]


def _archived(spark: "SparkSession", request: "ArchiveRequest") -> list[str]:
    from app.pipeline.archive.archive import archive  # noqa: PLC0415
    from app.pipeline.archive.progress import watch  # noqa: PLC0415

    with watch() as watcher:
        moved = asyncio.run(archive(spark, request, watcher))
    finished = [f"finished of an earlier run: {watcher.finished_rows} rows moved"] if watcher.finished_rows else []
    return finished + [f"{table}: {rows} rows moved" for table, rows in moved.items()]
