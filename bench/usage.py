"""What processes use of the machine."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """The processor time that a process and its children have used so far, and the memory that they hold now."""

    cpu_seconds: float
    memory_mib: float


def usage_of(pid: int) -> Usage:
    """The usage of a process and all its children; those that have ended count with whoever reaped them."""
    processes = list(_family(pid))
    cpu_seconds = sum(_cpu_seconds(process) for process in processes)
    return Usage(cpu_seconds, sum(_memory_mib(process) for process in processes))


def children_of(pid: int) -> set[int]:
    """The ids of the processes that a process has started and that run."""
    return {child.pid for child in psutil.Process(pid).children()}


def usage_of_all(pids: Iterable[int]) -> Usage:
    """The usage of several processes with their children."""
    usages = [usage_of(pid) for pid in pids]
    return Usage(sum(usage.cpu_seconds for usage in usages), sum(usage.memory_mib for usage in usages))


def _family(pid: int) -> Iterator[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        yield process
        yield from process.children(recursive=True)


def _cpu_seconds(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _memory_mib(process: psutil.Process) -> float:
    """Memory of the process's own: what the servers' processes share is not counted once for each."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return float(process.memory_full_info().uss) / MEBIBYTE
    return 0.0
