"""Settings are read from variables, and a bad one is named without being repeated."""

import pytest
from pydantic import ValidationError

from app.domain.task import AttemptLog
from app.settings import LogFormat, LogLevel, Settings, SettingsError, unknown_variables, variable_names


def test_defaults() -> None:
    settings = Settings.from_environment({})
    assert (settings.database_url, settings.host, settings.port) == ("sqlite:///leasemq.db", "127.0.0.1", 8080)
    assert (settings.workers, settings.insecure, settings.attempt_log) == (1, False, AttemptLog.ALL)


def test_every_setting_has_a_variable() -> None:
    assert variable_names() == {name: f"MQ_{name.upper()}" for name in Settings.model_fields}


def test_variables_are_read() -> None:
    settings = Settings.from_environment(
        {
            "MQ_DATABASE_URL": "postgresql://host/name",
            "MQ_PORT": "0",
            "MQ_WORKERS": "4",
            "MQ_INSECURE": "true",
            "MQ_DATABASE_TIMEOUT_SECONDS": "2.5",
            "MQ_ATTEMPT_LOG": "failures",
            "MQ_LOG_FORMAT": "json",
            "MQ_LOG_LEVEL": "debug",
        }
    )
    assert (settings.database_url, settings.port, settings.workers) == ("postgresql://host/name", 0, 4)
    assert (settings.insecure, settings.database_timeout_seconds) == (True, 2.5)
    assert (settings.attempt_log, settings.log_format) == (AttemptLog.FAILURES, LogFormat.JSON)
    assert settings.log_level is LogLevel.DEBUG


def test_empty_variable_counts_as_not_given() -> None:
    assert Settings.from_environment({"MQ_PORT": "", "MQ_DATABASE_URL": ""}) == Settings.from_environment({})


def test_other_variables_are_left_alone() -> None:
    assert Settings.from_environment({"PORT": "1", "mq_port": "2", "MQ_NO_SUCH": "3"}).port == 8080


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MQ_PORT", "hunter2"),
        ("MQ_PORT", "65536"),
        ("MQ_PORT", "-77"),
        ("MQ_WORKERS", "99977"),
        ("MQ_INSECURE", "hunter2"),
        ("MQ_DATABASE_TIMEOUT_SECONDS", "-77.25"),
        ("MQ_DATABASE_TIMEOUT_SECONDS", "nan"),
        ("MQ_DATABASE_LOCK_TIMEOUT_SECONDS", "inf"),
        ("MQ_ATTEMPT_LOG", "hunter2"),
        ("MQ_LOG_FORMAT", "hunter2"),
    ],
)
def test_bad_value_is_told_by_its_variable_and_not_repeated(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: ") as raised:
        Settings.from_environment({variable: value})
    message = str(raised.value).removeprefix(variable)
    assert value not in message.replace("finite", "").replace("less than or equal to 65535", "")


def test_every_bad_value_is_told() -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.from_environment({"MQ_PORT": "x", "MQ_WORKERS": "y"})
    assert "MQ_PORT: " in str(raised.value)
    assert "MQ_WORKERS: " in str(raised.value)


def test_cause_does_not_repeat_the_value_either() -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.from_environment({"MQ_PORT": "hunter2"})
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_variables_that_look_like_settings_are_found() -> None:
    variables = {"MQ_PROT": "1", "MQ_PORT": "2", "MQ_TEST_MYSQL_URL": "3", "PATH": "4", "MQ_": "5"}
    assert unknown_variables(variables) == ["MQ_", "MQ_PROT"]


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        setattr(Settings(), "port", 1)  # noqa: B010 - mypy knows better
