"""Files of a lake, wherever it is: on this machine, or behind one of Hadoop's filesystems.

What matters is `put`: a file is there whole or not at all, is durable when the call returns, and is never put twice.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from app.pipeline.errors import PipelineError

# Spark would take them for a pattern.
GLOB_CHARACTERS = frozenset("{}[]*?\\")
# Elsewhere a rename is a copy, and a put is atomic by itself.
ATOMIC_RENAME = frozenset({"file", "hdfs", "viewfs"})
# The JVM of a killed archiver outlives it for a moment, in which it writes and tidies up.
DELETE_ATTEMPTS = 100
DELETE_REST_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Found:
    """A file by its path from the lake's root, and its size."""

    path: str
    bytes: int


class Files(Protocol):
    """The files below a root; all paths are relative to it."""

    root: str

    def read(self, path: str) -> bytes | None:
        """What is in a file; None if there is none."""

    def put(self, path: str, content: bytes) -> bool:
        """Makes a file, whole and durable; False if there is one already, which is left as it is."""

    def names(self, path: str) -> list[str]:
        """The names in a directory, in order; none if there is no such directory."""

    def walk(self, path: str) -> list[Found]:
        """All files below a directory that readers see: no name on the way begins with `_` or `.`."""

    def delete(self, path: str) -> None:
        """Takes away a file or a directory with all that is in it, if it is there."""

    def sync(self, paths: Sequence[str]) -> None:
        """Makes files durable that others have written."""


def open_files(spark: SparkSession, url: str) -> Files:
    """The files below a local path or the URL of a Hadoop filesystem."""
    if GLOB_CHARACTERS & set(url):
        raise PipelineError(f"The lake's path must not hold any of {' '.join(sorted(GLOB_CHARACTERS))}: {url}")
    scheme, separator, rest = url.partition(":")
    if not separator or "/" in scheme:
        return LocalFiles(Path(url))
    if scheme == "file":
        return LocalFiles(Path("/" + rest.removeprefix("//localhost").lstrip("/")))
    return HadoopFiles(spark, url, atomic_rename=scheme in ATOMIC_RENAME)


class LocalFiles:
    """See `Files`; on this machine, or on what is mounted here."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.root = f"file://{self._root}"

    def read(self, path: str) -> bytes | None:
        with _told(self.root):
            try:
                return (self._root / path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def put(self, path: str, content: bytes) -> bool:
        with _told(self.root):
            target = self._root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{uuid4().hex}")
            try:
                _write_durably(temporary, content)
                return self._link(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)

    def names(self, path: str) -> list[str]:
        with _told(self.root):
            try:
                return sorted(entry.name for entry in (self._root / path).iterdir())
            except FileNotFoundError:
                return []

    def walk(self, path: str) -> list[Found]:
        with _told(self.root):
            return sorted(self._visible(self._root / path), key=lambda found: found.path)

    def delete(self, path: str) -> None:
        with _told(self.root):
            _delete(self._root / path)

    def sync(self, paths: Sequence[str]) -> None:
        with _told(self.root):
            for path in paths:
                _fsync(self._root / path)
            for directory in {(self._root / path).parent for path in paths}:
                self._sync_directories(directory)

    def _link(self, temporary: Path, target: Path) -> bool:
        try:
            # Unlike a rename, a link does not replace what is there.
            target.hardlink_to(temporary)
        except FileExistsError:
            return False
        except OSError:
            return self._rename(temporary, target)
        self._sync_directories(target.parent)
        return True

    def _rename(self, temporary: Path, target: Path) -> bool:
        """For filesystems without links."""
        if target.exists():
            return False
        temporary.rename(target)
        self._sync_directories(target.parent)
        return True

    def _visible(self, directory: Path) -> Iterator[Found]:
        for parent, directories, names in os.walk(directory):
            directories[:] = [name for name in directories if _is_visible(name)]
            for name in filter(_is_visible, names):
                file = Path(parent, name)
                yield Found(file.relative_to(self._root).as_posix(), file.stat().st_size)

    def _sync_directories(self, directory: Path) -> None:
        """A name is durable when its directory is, up to the root."""
        while directory.is_relative_to(self._root):
            _fsync(directory)
            directory = directory.parent


class HadoopFiles:
    """See `Files`; through Hadoop's own `FileSystem`, in the JVM that Spark has."""

    def __init__(self, spark: SparkSession, root: str, *, atomic_rename: bool) -> None:
        self.root = root.rstrip("/")
        self._atomic_rename = atomic_rename
        self._jvm: Any = spark._jvm
        configuration = spark._jsc.hadoopConfiguration()
        with _told(self.root):
            self._system = self._path("").getFileSystem(configuration)

    def read(self, path: str) -> bytes | None:
        with _told(self.root):
            if not self._system.exists(self._path(path)):
                return None
            stream = self._system.open(self._path(path))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def put(self, path: str, content: bytes) -> bool:
        with _told(self.root):
            if self._system.exists(self._path(path)):
                return False
            if not self._atomic_rename:
                # The object appears when its stream is closed, as a whole.
                return self._write(path, content)
            parent, _, name = path.rpartition("/")
            temporary = f"{parent}/.{name}.{uuid4().hex}"
            self._write(temporary, content)
            # It does not replace what is there.
            if self._system.rename(self._path(temporary), self._path(path)):
                return True
            self.delete(temporary)
            return False

    def names(self, path: str) -> list[str]:
        with _told(self.root):
            if not self._system.exists(self._path(path)):
                return []
            return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(path)))

    def walk(self, path: str) -> list[Found]:
        with _told(self.root):
            if not self._system.exists(self._path(path)):
                return []
            return sorted(self._visible(path), key=lambda found: found.path)

    def delete(self, path: str) -> None:
        with _told(self.root):
            self._system.delete(self._path(path), True)

    def sync(self, paths: Sequence[str]) -> None:
        """A file that was closed is as durable as its filesystem makes it."""

    def _visible(self, path: str) -> Iterator[Found]:
        for status in self._system.listStatus(self._path(path)):
            name = status.getPath().getName()
            if not _is_visible(name):
                continue
            if status.isDirectory():
                yield from self._visible(f"{path}/{name}")
            else:
                yield Found(f"{path}/{name}", status.getLen())

    def _write(self, path: str, content: bytes) -> bool:
        stream = self._system.create(self._path(path), False)
        try:
            stream.write(content)
            if self._atomic_rename:
                stream.hsync()
        finally:
            stream.close()
        return True

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{path}".rstrip("/"))


@contextlib.contextmanager
def _told(root: str) -> Iterator[None]:
    """What the filesystem refuses is told in one line."""
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        raise PipelineError(f"The lake {root} cannot be used: {str(cause.toString()).splitlines()[0]}") from error
    except OSError as error:
        raise PipelineError(f"The lake {root} cannot be used: {error.strerror}.") from error


def _is_visible(name: str) -> bool:
    return not name.startswith(("_", "."))


def _delete(target: Path) -> None:
    """Takes away a file, or a directory in which somebody who is about to end may still be at work."""
    for left in reversed(range(DELETE_ATTEMPTS)):
        try:
            return shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        except PermissionError:
            raise
        except OSError:
            # What was seen a moment ago may be gone by now, be full again, or be another directory of that name.
            if not left:
                raise
        time.sleep(DELETE_REST_SECONDS)
    return None


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
