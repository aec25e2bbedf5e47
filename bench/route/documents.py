"""The requests that are sent to the hot routes, and the JSON that is answered."""

from dataclasses import dataclass
from datetime import UTC, datetime

INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TIME = "2026-01-02T03:04:05.678901Z"
TASK_ID = "019b0000-0000-7000-8000-000000000000"
LEASE_TOKEN = "Yy7GoYxbskL4PfTQ1eoWdix76rpyZCbJ"
PAYLOAD = b'{"to":"ada@example.com","template":"welcome","text":"0123456789012345678901234567890123456789"}'


@dataclass(frozen=True, slots=True)
class Request:
    """A POST."""

    path: str
    body: bytes


REQUESTS = {
    "enqueue": Request("/v1/tasks", b'{"queue":"bench","payload":' + PAYLOAD + b"}"),
    "reserve": Request(
        "/v1/reserve", b'{"queues":["bench"],"limit":1,"lease_seconds":60,"worker_id":"bench"}'
    ),
    "ack": Request(f"/v1/tasks/{TASK_ID}/ack", b'{"lease_token":"' + LEASE_TOKEN.encode() + b'"}'),
}  # fmt: skip

TASK: dict[str, object] = {
    "id": TASK_ID, "tenant_id": "default", "queue": "bench", "topic": "bench", "publish_id": None, "type": "",
    "payload": {"to": "ada@example.com", "template": "welcome", "text": "0123456789" * 4},
    "content_type": "application/json", "meta": {}, "priority": 20, "dedupe_key": None, "status": "leased",
    "attempts": 1, "max_attempts": 5, "available_at": TIME, "expires_at": None, "timeout_seconds": None,
    "lease_owner": "bench", "lease_until": TIME, "last_error": None, "last_error_at": None, "result": None,
    "created_at": TIME, "updated_at": TIME, "first_leased_at": TIME, "finished_at": None, "lease_token": LEASE_TOKEN,
}  # fmt: skip

REPLIES: dict[str, object] = {
    REQUESTS["enqueue"].path: {
        "id": TASK_ID, "queue": "bench", "status": "ready", "available_at": TIME, "existed": False,
    },
    REQUESTS["reserve"].path: {"tasks": [TASK], "server_time": TIME, "next_available_at": None},
    REQUESTS["ack"].path: {"id": TASK_ID, "status": "done"},
}  # fmt: skip
