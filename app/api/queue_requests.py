"""The bodies of requests about queues and topics, and what they mean."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from app.api.fields import Count, Name, PositiveSeconds, Seconds
from app.api.requests import BackoffBody, Body, MessageBody
from app.domain.identifiers import new_task_id
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings
from app.domain.task import NewTask

Days = Annotated[float, Field(ge=0, le=36500, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
# Where null says something else than the default does.
KEEPS_ALL = ("history_days",)


class QueueBody(Body):
    """The settings of a queue; PUT gives what is absent its default, PATCH leaves it as it is."""

    topic: Name | None = Field(default=None, description="Subscribe to this topic, which must exist.")
    exclusive: bool | None = None
    keep_alive_seconds: PositiveSeconds | None = Field(default=None, description="60 if not given.")
    max_attempts: Count | None = Field(default=None, description="5 if not given; 0 is unlimited.")
    lease_seconds: PositiveSeconds | None = Field(default=None, description="30, or max_lease_seconds if that is less.")
    max_lease_seconds: PositiveSeconds | None = Field(default=None, description="43200 if not given.")
    backoff: BackoffBody | None = None
    rate_per_second: Rate | None = Field(default=None, description="Deliveries a second; unlimited if not given.")
    concurrency_limit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="Leases at once; unlimited if not given."
    )
    paused: bool | None = None
    history_days: Days | None = Field(default=None, description="14 if not given; 0 is an hour; null keeps all.")
    dlq_days: Days | None = Field(default=None, description="Dead letters are kept for ever if not given.")

    def over(self, settings: QueueSettings) -> QueueSettings:
        """The settings with what is given changed."""
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if getattr(self, name) is not None or (name in KEEPS_ALL and name in self.model_fields_set)
        }
        if self.backoff is not None:
            given["backoff"] = self.backoff.to_override().over(settings.backoff)
        return replace(settings, **given)

    def to_settings(self) -> QueueSettings:
        """All settings: what is not given takes its default."""
        settings = self.over(DEFAULT_QUEUE_SETTINGS)
        if self.lease_seconds is None:
            return replace(settings, lease_seconds=min(settings.lease_seconds, settings.max_lease_seconds))
        return settings


class KeepAliveBody(Body):
    seconds: PositiveSeconds


class CleanupBody(Body):
    older_than_seconds: Seconds | None = Field(default=None, description="All of the history if not given.")


class TopicBody(Body):
    """A topic has no settings."""


class PublishRequest(MessageBody):
    """A message: like a new task, but without a queue and an id."""

    def to_message(self, topic: str) -> NewTask:
        return self.build(task_id=None, queue=topic, topic=topic, publish_id=new_task_id())
