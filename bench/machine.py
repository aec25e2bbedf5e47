"""What a run ran on."""

import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil


def describe_machine() -> dict[str, object]:
    """The machine, as far as it matters for the figures."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def describe_moment() -> dict[str, object]:
    """When it is, and how many processes want to run just now, other people's work included."""
    return {"at": datetime.now(UTC).isoformat(timespec="minutes"), "load": round(psutil.getloadavg()[0], 1)}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
