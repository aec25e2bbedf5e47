"""`leasemq pipeline load`: the rows of a file become tasks."""

import argparse

from app.pipeline.commands.sending import add_sending, purpose, sending_options
from app.pipeline.errors import PipelineError
from app.settings import Settings


def add_load(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("load", help="enqueue the rows of a Parquet, CSV or JSON Lines file")
    parser.add_argument(
        "file", metavar="FILE", help="a file that ends in .parquet, .csv or .jsonl, or a folder of such"
    )
    parser.add_argument(
        "--queue", metavar="NAME", help="the queue for all rows, unless one is mapped with --map queue=COLUMN"
    )
    parser.add_argument("--tenant", metavar="NAME", help="whose tasks they are")
    parser.add_argument(
        "--map", action="append", default=[], type=field_and_column, metavar="FIELD=COLUMN",
        help="take a field of the task from a column, for example priority=prio; can be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--payload-columns", type=names, default=(), metavar="A,B,C", help="the payload is an object of these columns"
    )
    parser.add_argument("--key", metavar="COLUMN", help="what tells rows apart; without it their contents do")
    add_sending(parser)
    parser.set_defaults(run=run_load)


def field_and_column(text: str) -> tuple[str, str]:
    field, equals, column = text.partition("=")
    if not field or not equals or not column:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=COLUMN")
    return field, column


def names(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of columns")
    return found


def check_owners(options: argparse.Namespace) -> None:
    """Raises `PipelineError` for rows without a queue, or with two tenants."""
    mapped = dict(options.map)
    if options.queue is None and "queue" not in mapped:
        raise PipelineError("say the queue: --queue NAME, or --map queue=COLUMN")
    if options.tenant is not None and "tenant_id" in mapped:
        raise PipelineError("--tenant and --map tenant_id=COLUMN cannot both be given")


def run_load(settings: Settings, options: argparse.Namespace) -> int:
    from app.pipeline.load import FieldMap, load_rows  # noqa: PLC0415
    from app.pipeline.sink.run import Sending, check_sending, open_quietly, run_sending  # noqa: PLC0415

    check_owners(options)
    sending = Sending(sending_options(options, "load"), purpose(options, "load"), options.state, options.dry_run)
    check_sending(sending)
    spark = open_quietly("load", options.master)
    fields = FieldMap(dict(options.map), options.payload_columns, options.key)
    return run_sending(load_rows(spark, options.file, fields), sending)
