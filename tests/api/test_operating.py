"""Health, metrics, logs, and the description of the service."""

import json
import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.cli import main
from tests.api.caller import Caller, connect, lease_of, new_tenant
from tests.api.command import run
from tests.api.conftest import StartService
from tests.service import ROOT, Service

Sample = tuple[str, tuple[tuple[str, str], ...]]


def scrape(client: httpx.Client) -> dict[Sample, float]:
    """Every sample of the metrics by its name and labels."""
    response = client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def sample(name: str, **labels: str) -> Sample:
    return name, tuple(sorted(labels.items()))


def test_health(client: httpx.Client) -> None:
    assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 200)


def test_names_begin_with_mq(client: httpx.Client, api: Caller) -> None:
    api.settle("ack", api.lease())
    names = {name for name, _ in scrape(client)}
    assert names
    assert {name for name in names if not name.startswith("mq_")} == set()


def test_requests_are_counted_by_route_and_outcome(client: httpx.Client, api: Caller) -> None:
    before = scrape(client)
    api.task(api.enqueue()["id"])
    for path in ("/v1/tasks/none", "/v1/tasks/none-either", "/nowhere", "/nowhere-else"):
        client.get(path)
    client.post("/v1/tasks", json={})
    after = scrape(client)

    def counted(method: str, route: str, status: str) -> float:
        key = sample("mq_http_requests_total", method=method, route=route, status=status)
        return after.get(key, 0) - before.get(key, 0)

    assert counted("POST", "/v1/tasks", "201") == 1
    assert counted("POST", "/v1/tasks", "422") == 1
    assert counted("GET", "/v1/tasks/{task_id}", "200") == 1
    assert counted("GET", "/v1/tasks/{task_id}", "404") == 2
    assert counted("unmatched", "unmatched", "404") == 2
    timed = sample("mq_http_request_seconds_count", method="GET", route="/v1/tasks/{task_id}", outcome="4xx")
    assert after[timed] - before.get(timed, 0) == 2


def test_operations_are_counted_by_queue_and_outcome(client: httpx.Client, api: Caller) -> None:
    queue = f"queue-{new_tenant()}"
    api.enqueue(queue=queue, dedupe_key="key", id="task")
    api.enqueue(queue=queue, dedupe_key="key")
    client.post("/v1/tasks", json={"queue": queue, "payload": 1, "id": "task"})
    [task] = api.reserve(queues=[queue])
    api.reserve(queues=[queue])
    api.settle("nack", task, delay_seconds=0)
    [task] = api.reserve(queues=[queue])
    api.settle("fail", task, reason="no")
    api.post("/v1/dlq/requeue")
    api.settle("ack", api.reserve(queues=[queue])[0])
    seen = {labels: value for (name, labels), value in scrape(client).items() if name == "mq_operations_total"}
    of_queue = {
        (dict(labels)["operation"], dict(labels)["outcome"]): value
        for labels, value in seen.items()
        if dict(labels)["queue"] == queue
    }
    assert of_queue == {
        ("enqueue", "ok"): 1,
        ("enqueue", "existed"): 1,
        ("enqueue", "task_exists"): 1,
        ("reserve", "ok"): 3,
        ("reserve", "empty"): 1,
        ("nack", "ok"): 1,
        ("fail", "ok"): 1,
        ("requeue", "ok"): 1,
        ("ack", "ok"): 1,
    }


def test_labels_hold_no_ids_tokens_or_tenants(client: httpx.Client, api: Caller) -> None:
    task = api.lease(id="id-that-is-no-label", type="type-that-is-no-label", dedupe_key="key-that-is-no-label")
    api.settle("extend", task, lease_seconds=60)
    client.post("/v1/tasks/wrong-id-that-is-no-label/ack", json={"lease_token": task["lease_token"]})
    client.get("/nowhere/that-is-no-label")
    api.settle_many("ack", lease_of(task))
    text = client.get("/metrics").text
    assert "that-is-no-label" not in text
    assert task["lease_token"] not in text
    assert api.tenant not in text


SECRET = "s3cret-marker"


def tell_secrets(api: Caller) -> list[str]:
    """Puts a marker wherever a caller's own words go, and returns it with the tokens that were given."""
    tokens = []
    for verb, extra in (
        ("ack", {"result": {SECRET: SECRET}}),
        ("nack", {"error": f"failed: {SECRET}"}),
        ("fail", {"reason": f"failed: {SECRET}"}),
        ("release", {}),
        ("extend", {"lease_seconds": 90}),
    ):
        task = api.lease(queue=verb, payload={SECRET: SECRET}, meta={SECRET: SECRET}, id=f"task-{verb}")
        tokens.append(task["lease_token"])
        api.settle(verb, task, **extra)
        body = {"lease_token": task["lease_token"], **extra}
        api.client.post(f"/v1/tasks/unknown/{verb}", json=body)
        api.client.post(f"/v1/tasks/task-{verb}/{verb}", json={**body, "surprise": SECRET})
    api.dead_letters(reason_contains=SECRET)
    api.client.post("/v1/tasks", json={"queue": "work", "payload": SECRET, "priority": SECRET, SECRET: 1})
    api.client.post("/v1/tasks", content=f'{{"queue":"work","payload":"{SECRET}",', headers={"Content-Type": "json"})
    api.client.post("/v1/tasks", content=f'{{"{SECRET}', headers={"Content-Type": "application/json"})
    api.client.get("/v1/tasks", params={"cursor": SECRET})
    return [SECRET, *tokens]


def test_callers_words_are_not_logged(api: Caller, server: Service) -> None:
    secrets = tell_secrets(api)
    assert "path=/v1/tasks/task-ack/ack" in server.log_text()
    assert [secret for secret in secrets if secret in server.log_text()] == []


def test_callers_words_are_not_logged_in_detail_either(start_service: StartService, sqlite_url: str) -> None:
    # On SQLite, whose driver is the one that tells of every statement.
    service = start_service(sqlite_url, MQ_LOG_LEVEL="debug")
    with connect(service, new_tenant()) as client:
        secrets = tell_secrets(Caller(client))
    assert [secret for secret in secrets if secret in service.log_text()] == []


@pytest.fixture
def json_log(start_service: StartService, sqlite_url: str) -> list[dict[str, object]]:
    """The log of a service that writes JSON, from its start to its end."""
    service = start_service(sqlite_url, MQ_LOG_FORMAT="json", MQ_SURPRISE="1")
    with connect(service, new_tenant()) as client:
        client.get("/v1/tasks/none", headers={"X-Request-Id": 'quote " and \\ backslash'})
        client.get("/v1/tasks/line%0Abreak")
    service.terminate()
    return [json.loads(line) for line in service.log_text().splitlines()]


def test_json_log_is_one_object_a_line(json_log: list[dict[str, object]]) -> None:
    assert all({"time", "level", "logger", "message"} <= set(line) for line in json_log)
    [request] = [line for line in json_log if line.get("request_id") == 'quote " and \\ backslash']
    assert (request["method"], request["path"], request["status"]) == ("GET", "/v1/tasks/none", 404)
    assert "MQ_SURPRISE is not a setting" in {line["message"] for line in json_log}


def test_text_log_is_one_line_an_event(client: httpx.Client, server: Service) -> None:
    client.get("/v1/tasks/line%0Abreak%0D%0A2026-01-01T00:00:00.000000Z%20forged")
    lines = server.log_text().splitlines()
    assert [line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \w+ ", line)] == []
    assert [line for line in lines if line.endswith("forged")] == []


COMMITTED = ROOT / "openapi" / "openapi.json"


def test_openapi_document_is_the_committed_one(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json() == json.loads(COMMITTED.read_text("utf-8"))


def test_openapi_check_finds_no_difference() -> None:
    assert run("openapi", "--check", str(COMMITTED)).returncode == 0


def test_openapi_check_finds_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The logs of this process are the test run's.
    monkeypatch.setattr("app.cli.configure_logs", lambda *_, **__: None)
    other = tmp_path / "openapi.json"
    for content in (None, "{}"):
        if content is not None:
            other.write_text(content)
        assert main(["openapi", "--check", str(other)]) == 1
        assert "openapi.json is out of step" in capsys.readouterr().err


CONTRACT = """
POST /v1/tasks
GET /v1/tasks
POST /v1/tasks/batch
POST /v1/reserve
POST /v1/tasks/{}/extend
POST /v1/tasks/{}/ack
POST /v1/tasks/{}/nack
POST /v1/tasks/{}/release
POST /v1/tasks/{}/fail
POST /v1/tasks/extend
POST /v1/tasks/ack
POST /v1/tasks/nack
POST /v1/tasks/release
POST /v1/tasks/fail
GET /v1/tasks/{}
PATCH /v1/tasks/{}
DELETE /v1/tasks/{}
GET /v1/tasks/{}/attempts
GET /v1/dlq
GET /v1/dlq/{}
DELETE /v1/dlq/{}
POST /v1/dlq/{}/requeue
POST /v1/dlq/requeue
POST /v1/dlq/purge
GET /healthz
GET /readyz
GET /metrics
"""


def test_openapi_document_has_every_route(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    described = {
        f"{method.upper()} {re.sub('{[^}]*}', '{}', path)}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert set(CONTRACT.split("\n")[1:-1]) <= described


def test_openapi_document_tells_of_refusals_and_fields(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    problem = document["components"]["schemas"]["Problem"]["properties"]
    assert {"type", "title", "status", "detail", "code", "request_id", "errors", "applied"} <= set(problem)
    ack = document["paths"]["/v1/tasks/{task_id}/ack"]["post"]["responses"]
    assert {"200", "404", "409", "413", "415", "422", "503"} <= set(ack)
    for code in ("lease_expired", "lease_mismatch", "task_not_leased"):
        assert code in ack["409"]["description"]
    text = json.dumps(document)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(document["components"]["schemas"])


def test_docs_are_served(client: httpx.Client) -> None:
    response = client.get("/docs")
    assert (response.status_code, response.headers["Content-Type"].partition(";")[0]) == (200, "text/html")


def test_doctor(client: httpx.Client, server: Service) -> None:
    diagnosis = client.get("/v1/doctor").json()
    assert set(diagnosis) == {"database", "status", "server_time", "findings"}
    assert [finding["check"] for finding in diagnosis["findings"]] == [
        "schema_version", "missing_indexes", "unused_indexes", "dead_rows", "oldest_transaction", "clock",
    ]  # fmt: skip
    assert all({"check", "severity", "detail", "advice"} <= set(finding) for finding in diagnosis["findings"])
    assert diagnosis["findings"][0]["severity"] == "ok"
