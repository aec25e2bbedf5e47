"""A tenant's calls about queues, topics and operations; their replies are held to the described ones too."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import BaseModel

from app.api import replies
from tests.api.caller import TIMEOUT_SECONDS, Caller, Json
from tests.api.checking import ID, ReplyCheck, check_fields, read
from tests.service import Service

MODELS: Mapping[str, type[BaseModel]] = {
    "GET /v1/queues 200": replies.QueueListReply,
    f"PUT /v1/queues/{ID} (200|201)": replies.QueueReply,
    f"(GET|PATCH) /v1/queues/{ID} 200": replies.QueueReply,
    f"DELETE /v1/(queues|topics)/{ID} 200": replies.DeletedReply,
    f"POST /v1/queues/{ID}/(pause|resume) 200": replies.QueueReply,
    f"POST /v1/queues/{ID}/keep-alive 200": replies.KeepAliveReply,
    f"POST /v1/queues/{ID}/purge 200": replies.PurgeReply,
    f"POST /v1/(queues|topics)/{ID}/cleanup 200": replies.CleanupReply,
    f"GET /v1/queues/{ID}/stats 200": replies.StatsReply,
    "GET /v1/topics 200": replies.TopicListReply,
    f"PUT /v1/topics/{ID} (200|201)": replies.TopicReply,
    f"GET /v1/topics/{ID} 200": replies.TopicReply,
    f"POST /v1/topics/{ID}/publish 201": replies.PublishReply,
    f"GET /v1/tasks/{ID}/explain 200": replies.ExplainReply,
    "POST /v1/dlq/requeue 202": replies.OperationReply,
    f"(GET|DELETE) /v1/operations/{ID} 200": replies.OperationReply,
}


class TopologyCheck(ReplyCheck):
    """Knows the replies about queues, topics and operations beside those about tasks."""

    def _check_reply(self, response: httpx.Response) -> None:
        asked = f"{response.request.method} {response.request.url.path} {response.status_code}"
        model = next((model for route, model in MODELS.items() if re.fullmatch(route, asked)), None)
        if model is None:
            super()._check_reply(response)
            return
        assert response.headers["Content-Type"] == "application/json"
        reply = read(response)
        model.model_validate_json(json.dumps(reply), strict=True)
        check_fields(reply)


def connect(service: Service, tenant: str) -> httpx.Client:
    """A client that checks every reply."""
    return httpx.Client(
        base_url=service.url,
        headers={"X-Tenant-Id": tenant},
        timeout=TIMEOUT_SECONDS,
        verify=False,
        event_hooks={"response": [TopologyCheck()]},
    )


class TopologyCaller(Caller):
    """Each call must succeed, as a caller's of tasks."""

    def put(self, path: str, body: Json | None = None, status: int | None = None) -> Json:
        return self._sent("PUT", path, body, status)

    def patch(self, path: str, body: Json) -> Json:
        return self._sent("PATCH", path, body, 200)

    def delete(self, path: str) -> Json:
        return self._sent("DELETE", path, None, 200)

    def put_queue(self, name: str, **settings: Any) -> Json:
        return self.put(f"/v1/queues/{name}", settings)

    def put_topic(self, name: str, *queues: str) -> None:
        """Declares a topic and queues that are subscribed to it."""
        self.put(f"/v1/topics/{name}")
        for queue in queues:
            self.put_queue(queue, topic=name)

    def publish(self, topic: str, **fields: Any) -> Json:
        return self.post(f"/v1/topics/{topic}/publish", {"payload": None, **fields})

    def stats(self, queue: str) -> Json:
        return self.get(f"/v1/queues/{queue}/stats")

    def explain(self, task_id: str) -> Json:
        return self.get(f"/v1/tasks/{task_id}/explain")

    def _sent(self, method: str, path: str, body: Json | None, status: int | None) -> Json:
        response = (
            self.client.request(method, path, json=body) if body is not None else self.client.request(method, path)
        )
        assert response.is_success if status is None else response.status_code == status, response.text
        reply: Json = response.json()
        return reply
