"""`leasemq pipeline archive`: what finished long ago goes from the database to a lake."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from app.pipeline.commands.options import add_database_url, add_master, duration
from app.settings import Settings

if TYPE_CHECKING:
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

    request = ArchiveRequest(settings.database_url, options.lake, options.older_than, options.dead_letters)
    # Before Spark starts, which takes a while.
    asyncio.run(check_request(request))
    for table, rows in _moved(request, options).items():
        print(f"{table}: {rows} rows {'would move' if options.dry_run else 'moved'}")
    return 0


def _moved(request: "ArchiveRequest", options: argparse.Namespace) -> dict[str, int]:
    from app.pipeline.archive.archive import archive, rehearse  # noqa: PLC0415
    from app.pipeline.archive.progress import watch  # noqa: PLC0415
    from app.pipeline.session import open_session  # noqa: PLC0415

    spark = open_session("archive", options.master)
    if options.dry_run:
        return asyncio.run(rehearse(spark, request))
    with watch() as watcher:
        return asyncio.run(archive(spark, request, watcher))
