"""`leasemq pipeline replay`: finished tasks and dead letters become tasks again."""

import argparse

from app.pipeline.commands.options import add_database_url
from app.pipeline.commands.sending import add_sending, purpose, sending_options
from app.pipeline.errors import PipelineError
from app.settings import Settings


def add_replay(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("replay", help="enqueue tasks of the lake, or dead letters, again")
    parser.add_argument("--lake", metavar="DIR", help="the lake that `leasemq pipeline archive` keeps")
    parser.add_argument("--where", metavar="CONDITION", help="which ones: SQL over the columns of the table")
    parser.add_argument("--dead-letters", action="store_true", help="dead letters instead of finished tasks")
    parser.add_argument("--queue", metavar="NAME", help="into this queue, not the one that each was in")
    parser.add_argument("--keep-ids", action="store_true", help="under the ids that the tasks had; new ones otherwise")
    add_database_url(parser)
    add_sending(parser)
    parser.set_defaults(run=run_replay)


def run_replay(settings: Settings, options: argparse.Namespace) -> int:
    from app.pipeline.replay import replay_rows  # noqa: PLC0415
    from app.pipeline.sink.run import Sending, check_sending, open_quietly, run_sending  # noqa: PLC0415
    from app.pipeline.source.factory import find_database  # noqa: PLC0415
    from app.pipeline.tables import DLQ, HISTORY  # noqa: PLC0415

    if options.database_url is not None and not options.dead_letters:
        raise PipelineError("only dead letters are replayed from the database: add --dead-letters")
    if options.lake is None and options.database_url is None:
        raise PipelineError("say from where: --lake DIR, or for dead letters --database-url URL")
    sending = Sending(sending_options(options, "replay"), purpose(options, "replay"), options.state, options.dry_run)
    check_sending(sending)
    if options.database_url is not None:
        find_database(options.database_url).check()
    rows = replay_rows(
        open_quietly("replay", options.master),
        DLQ if options.dead_letters else HISTORY,
        lake=options.lake,
        database_url=options.database_url,
        condition=options.where,
        queue=options.queue,
        keep_ids=options.keep_ids,
    )
    return run_sending(rows, sending)
