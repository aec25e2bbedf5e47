"""What Spark complains about, in one line that a user can act on."""

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

# Most complaints are PySpark's own; some come as Java threw them.
SPARK_ERRORS = (PySparkException, Py4JJavaError)

_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] ")
# What this package says itself, at the end of a worker's traceback.
_OWN = re.compile(r"^(?:[\w.]+\.)?(?:PipelineError|DeliveryError): (.+)$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")


def one_line(error: Exception) -> str:
    """The first line of a complaint, without codes and stack traces."""
    told = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    if own := _OWN.search(str(told)):
        return own[1].strip()
    lines = str(told).strip().splitlines() or [type(error).__name__]
    return _STATE.sub("", _CLASS.sub("", lines[0])).strip()
