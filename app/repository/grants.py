"""Leases that are to be given, as PostgreSQL's statements take them.

The driver looks at an array element by element, which takes longer than to read it. So what has no blanks in it goes as
one text, and what is the same for many in a row is said once.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from app.domain.lease_token import lease_token_hash


def joined(words: Iterable[str]) -> str:
    """Ids or hashes as one text: neither has a blank."""
    return " ".join(words)


def grant_parameters(worker_ids: Sequence[str], tokens: Sequence[str]) -> dict[str, object]:
    """The first token goes to the first worker, and so on. A run of one worker `begins` at a place counted from one."""
    runs = [(worker_id, len(list(run))) for worker_id, run in groupby(worker_ids)]
    return {
        "token_hashes": joined(map(lease_token_hash, tokens)),
        "worker_ids": [worker_id for worker_id, _ in runs],
        "begins": list(accumulate((length for _, length in runs[:-1]), initial=1)),
    }
