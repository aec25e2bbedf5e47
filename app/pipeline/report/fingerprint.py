"""The fingerprint of an error: its text without what differs from one time to the next."""

from pyspark.sql import Column
from pyspark.sql import functions as F

NO_REASON = "(no reason given)"
LONGEST = 240
# What is looked at: an error may be 8 KiB long, and its kind is told early, or in a traceback's last line.
LOOKED_AT = 8192

# In this order: what a later rule would tear apart comes first.
RULES = (
    # A Python traceback says what happened in its last line.
    (r"(?s)^Traceback \(most recent call last\).*\n(?=\S)", ""),
    (r"\s+", " "),
    (r'"[^"]*"', '"…"'),
    (r"(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])", "'…'"),
    (r"`[^`]*`", "`…`"),
    (r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<hex>"),
    (r"(?i)\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b", "<hex>"),
    # Made by a machine: long, without a pause, and letters and numbers take turns.
    (r"\b(?=[A-Za-z]*\d+[A-Za-z]+\d)[0-9A-Za-z]{10,}\b", "<id>"),
    (r"\d+(?:[.,:]\d+)*", "#"),
)


def fingerprint(reason: Column) -> Column:
    """One text for all errors of a kind; never NULL and never empty."""
    text = F.trim(F.substring(reason, 1, LOOKED_AT))
    for pattern, replacement in RULES:
        text = F.regexp_replace(text, pattern, replacement)
    text = F.trim(F.substring(F.trim(text), 1, LONGEST))
    return F.coalesce(F.nullif(text, F.lit("")), F.lit(NO_REASON))
