"""The parameters of lists."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.api.fields import Instant, Name, Text, TypeName
from app.domain.commands import DeadLetterFilter, TaskFilter
from app.domain.task import Status


def _empty_to_none(value: object) -> object:
    return None if value == "" else value


OptionalName = Annotated[Name | None, BeforeValidator(_empty_to_none)]
OptionalType = Annotated[TypeName | None, BeforeValidator(_empty_to_none)]
OptionalInstant = Annotated[Instant | None, BeforeValidator(_empty_to_none)]


class Paging(BaseModel):
    """An unknown parameter is refused: a filter with a typo would list everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = Field(default=None, max_length=1000, description="The `next_cursor` of the page before.")


class CancelQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    force: bool = Field(default=False, description="Also a leased one: its token is void from then on.")


class QueueQuery(Paging):
    topic: OptionalName = None


class TaskQuery(Paging):
    queue: OptionalName = None
    status: Annotated[Status | None, BeforeValidator(_empty_to_none)] = Field(
        default=None, description="Without it the live ones."
    )
    type: OptionalType = None
    topic: OptionalName = None

    def to_filter(self) -> TaskFilter:
        return TaskFilter(self.status, self.queue, self.type, self.topic)


class DeadLetterQuery(Paging):
    queue: OptionalName = None
    topic: OptionalName = None
    type: OptionalType = None
    reason_contains: Text | None = Field(default=None, description="Literal and case-sensitive.")
    before: OptionalInstant = None
    after: OptionalInstant = None

    def to_filter(self) -> DeadLetterFilter:
        return DeadLetterFilter(
            self.queue, self.topic, self.type, self.reason_contains or None, self.before, self.after
        )


TaskParameters = Annotated[TaskQuery, Query()]
DeadLetterParameters = Annotated[DeadLetterQuery, Query()]
QueueParameters = Annotated[QueueQuery, Query()]
CancelParameters = Annotated[CancelQuery, Query()]
PagingParameters = Annotated[Paging, Query()]
