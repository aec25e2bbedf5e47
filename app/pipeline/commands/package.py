"""`leasemq pipeline package`: what `spark-submit` takes along to a cluster."""

import argparse
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from app.pipeline.errors import PipelineError
from app.settings import Settings

PACKAGE = "app"
ZIP = "leasemq.zip"
ENTRY = "leasemq_pipeline.py"
LEFT_OUT = frozenset({"__pycache__", "alembic"})


def add_package(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("package", help=f"write {ZIP} and {ENTRY}, for spark-submit")
    parser.add_argument("directory", metavar="DIR", type=Path, help="where to; made if it is not there")
    parser.set_defaults(run=run)


def run(settings: Settings, options: argparse.Namespace) -> int:
    try:
        entry, package = write_package(options.directory)
    except OSError as error:
        raise PipelineError(f"{options.directory} cannot be written to: {error.strerror}.") from error
    print(f"spark-submit --py-files {package} {entry} COMMAND …")
    return 0


def write_package(directory: Path) -> tuple[Path, Path]:
    """Writes the file that is run and the code that goes with it; gives the paths of both."""
    directory.mkdir(parents=True, exist_ok=True)
    code = files(PACKAGE)
    entry, package = directory / ENTRY, directory / ZIP
    with ZipFile(package, "w", ZIP_DEFLATED) as archive:
        for path, file in _sources(code, PACKAGE):
            archive.writestr(path, file.read_bytes())
    entry.write_bytes((code / "submit.py").read_bytes())
    return entry, package


def _sources(directory: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for child in sorted(directory.iterdir(), key=lambda child: child.name):
        if child.name in LEFT_OUT:
            continue
        if child.is_dir():
            yield from _sources(child, f"{path}/{child.name}")
        else:
            yield f"{path}/{child.name}", child
