"""What a look at the database's health finds, and what to do about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Check(StrEnum):
    """What is looked at, in this order."""

    SCHEMA_VERSION = "schema_version"
    MISSING_INDEXES = "missing_indexes"
    UNUSED_INDEXES = "unused_indexes"
    DEAD_ROWS = "dead_rows"
    OLDEST_TRANSACTION = "oldest_transaction"
    CLOCK = "clock"


class Severity(StrEnum):
    """In order, the worst last."""

    # The database does not tell, or does not let this user look.
    UNKNOWN = "unknown"
    OK = "ok"
    NOTICE = "notice"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check; where something should be done, `advice` says what."""

    check: Check
    severity: Severity
    detail: str
    advice: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    database: str
    server_time: datetime
    findings: Sequence[Finding]

    @property
    def severity(self) -> Severity:
        """That of the worst finding."""
        return max((finding.severity for finding in self.findings), key=list(Severity).index)
