"""The image and the compose file are in step with the service, and open nothing by themselves."""

import re

from app.settings import Settings, variable_names
from tests.docs.markdown import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
PROMETHEUS = (ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8")
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    """The arguments of the Dockerfile's instructions of that name, in order."""
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


def test_image_copies_what_is_there_and_not_ignored() -> None:
    copied = [source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert re.search(rf"^!{re.escape(source)}/?$", IGNORE, re.MULTILINE), f"{source} is ignored"


def test_image_does_not_run_as_root() -> None:
    [user] = instructions("USER")
    assert user != "root"
    assert DOCKERFILE.index("USER ") < DOCKERFILE.index("CMD [\"leasemq\"")  # fmt: skip


def test_image_exposes_the_default_port() -> None:
    assert instructions("EXPOSE") == [str(Settings().port)]


def test_image_sets_no_setting() -> None:
    assert not [line for line in instructions("ENV") if "MQ_" in line]


def test_compose_sets_only_settings_that_there_are() -> None:
    given = dict(re.findall(r"^ +(MQ_\w+): \"?([^\"\n]+)\"?$", COMPOSE, re.MULTILINE))
    assert set(given) <= set(variable_names().values())
    settings = Settings.from_environment(given)
    assert (settings.host, settings.insecure) == ("0.0.0.0", True)


def test_compose_publishes_on_loopback_only() -> None:
    published = re.findall(r"^ +- \"?([\d.:]*:\d+)\"?$", COMPOSE, re.MULTILINE)
    assert len(published) == COMPOSE.count("ports:")
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_compose_mounts_what_is_there() -> None:
    mounted = re.findall(r"^ +- (\./[^:]+):", COMPOSE, re.MULTILINE)
    assert mounted
    assert all((ROOT / path).is_file() for path in mounted)


def test_prometheus_scrapes_the_service_of_the_compose_file() -> None:
    targets = re.findall(r"targets: \[\"(\w+):(\d+)\"\]", PROMETHEUS)
    assert targets == [("leasemq", str(Settings().port))]
    assert re.search(r"^  leasemq:$", COMPOSE, re.MULTILINE)


def test_no_tabs_where_yaml_forbids_them() -> None:
    assert "\t" not in COMPOSE + PROMETHEUS
