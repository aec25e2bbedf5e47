"""How a database means to run a statement, read from what its EXPLAIN says."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The tables that grow with the backlog or with time.
LARGE = frozenset({"mq_tasks", "mq_task_history", "mq_task_dlq", "mq_task_attempts"})
# More rows than any batch has: a sort of these is one of the backlog.
BACKLOG_ROWS = 2000

_ALIAS = re.compile(r"\b(mq_\w+)(?:\s+AS\s+(\w+))?", re.IGNORECASE)
_TREE_LINE = re.compile(r"^(?P<indent> *)-> (?P<text>.*)$")
_TREE_ROWS = re.compile(r"rows=([\d.e+]+)")


@dataclass
class Node:
    """A step of a plan: what it does, to which table, and about how many rows come out of it."""

    step: str
    table: str | None = None
    rows: float = 0.0
    bounded: bool = False
    scans: bool = False
    # Along an index from one of its ends: fine as far as a limit goes.
    walks: bool = False
    sorts: bool = False
    children: "list[Node]" = field(default_factory=list)

    def walk(self) -> "Iterator[Node]":
        yield self
        for child in self.children:
            yield from child.walk()

    def scanning(self, *, bounded: bool = False) -> "Iterator[Node]":
        """The reads of large tables from one end to the other."""
        bounded = bounded or self.bounded
        if self.table in LARGE and (self.scans or (self.walks and not bounded)):
            yield self
        for child in self.children:
            yield from child.scanning(bounded=bounded)

    def feeds(self) -> "Iterator[Node]":
        """The reads of large tables that come to this step without a bound in between."""
        for child in self.children:
            if child.table in LARGE:
                yield child
            if not child.bounded:
                yield from child.feeds()


@dataclass(frozen=True)
class Plan:
    """The plan of one statement; `sql` is what it is of."""

    sql: str
    root: Node

    def scans(self) -> Sequence[str]:
        """The reads of large tables from one end to the other."""
        return [node.step for node in self.root.scanning()]

    def sorts(self) -> Sequence[str]:
        """The sorts of as many rows as the backlog may have."""
        return [
            node.step
            for node in self.root.walk()
            if node.sorts and any(feed.rows > BACKLOG_ROWS for feed in node.feeds())
        ]


def read_postgresql(sql: str, explained: Any) -> Plan:
    """From `FORMAT JSON`, which comes as text or read already."""
    [document] = json.loads(explained) if isinstance(explained, str) else explained
    return Plan(sql, _postgresql_node(document["Plan"]))


def _postgresql_node(plan: Mapping[str, Any]) -> Node:
    kind = plan["Node Type"]
    return Node(
        step=" ".join(
            str(plan[key]) for key in ("Node Type", "Index Name", "Relation Name", "Sort Key") if key in plan
        ),
        table=plan.get("Relation Name"),
        rows=plan["Plan Rows"],
        bounded=kind == "Limit",
        scans=kind == "Seq Scan",
        walks=kind.startswith("Index") and "Index Cond" not in plan,
        sorts=kind in {"Sort", "Incremental Sort"},
        children=[_postgresql_node(child) for child in plan.get("Plans", ())],
    )


def read_mysql(sql: str, explained: Any) -> Plan:
    """From `FORMAT=TREE`: a line a step, and the deeper a step the further it is indented."""
    tables = _tables_by_alias(sql)
    root = Node("statement")
    above = [(-1, root)]
    for line in str(explained).splitlines():
        match = _TREE_LINE.match(line)
        if match is None:
            continue
        depth, node = len(match["indent"]), _mysql_node(match["text"], tables)
        while above[-1][0] >= depth:
            above.pop()
        above[-1][1].children.append(node)
        above.append((depth, node))
    return Plan(sql, root)


def mysql_tree(steps: Iterable[tuple[str, str, int]]) -> str:
    """The same of a table, a way of access and a number of rows for each step, which is all that some plans tell."""
    words = {"ALL": "Table scan", "index": "Index scan"}
    read = ((words.get(access, "Index lookup"), table, rows) for table, access, rows in steps)
    return "\n".join(f"-> {word} on {table} (rows={rows})" for word, table, rows in read)


def _mysql_node(step: str, tables: Mapping[str, str]) -> Node:
    read = re.search(r"(?:scan|lookup|search) on (\w+)", step, re.IGNORECASE)
    rows = _TREE_ROWS.search(step)
    return Node(
        step=step,
        table=tables.get(read[1]) if read else None,
        rows=float(rows[1]) if rows else 0.0,
        bounded=step.startswith("Limit"),
        scans=step.startswith("Table scan"),
        walks=step.startswith(("Index scan", "Covering index scan")),
        sorts=step.startswith("Sort"),
    )


def read_sqlite(sql: str, explained: Any) -> Plan:
    """From `EXPLAIN QUERY PLAN`: it tells no numbers, so only what is found by a key is taken for few rows."""
    tables = _tables_by_alias(sql)
    root = Node("statement")
    nodes = {0: root}
    for number, parent, _, step in explained:
        nodes[number] = _sqlite_node(step, tables)
        nodes[parent].children.append(nodes[number])
    for node in list(root.walk()):
        # A sort stands beside what it sorts, not above it.
        for child in [child for child in node.children if child.sorts]:
            child.children = [other for other in node.children if not other.sorts]
    return Plan(sql, root)


def _sqlite_node(step: str, tables: Mapping[str, str]) -> Node:
    read = re.match(r"(SCAN|SEARCH) (\w+)", step)
    by_key = re.search(r"\browid=\?|\bid=\?|task_id=\?|dedupe_key=\?", step) is not None
    return Node(
        step=step,
        table=tables.get(read[2]) if read else None,
        rows=0.0 if by_key else float("inf"),
        # What a subquery gives is bounded: those that are sorted or joined have a limit of their own.
        bounded=step.startswith(("CO-ROUTINE", "MATERIALIZE", "LIST SUBQUERY", "SCALAR SUBQUERY", "CORRELATED")),
        scans=step.startswith("SCAN"),
        sorts=step.startswith("USE TEMP B-TREE"),
    )


def _tables_by_alias(sql: str) -> dict[str, str]:
    return {alias or table: table for table, alias in _ALIAS.findall(sql)}
