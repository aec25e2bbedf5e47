"""Routes that are called very often: a sound request gets to its function by the shortest way.

Such a route is declared as any other, and FastAPI describes it. But what its function takes is known beforehand: the
body, the id in the path, the tenant, the service and the caller. So they are read and handed over directly: the body
as it mostly is (`hot_bodies`), else by its declared model. Whatever is not sound is left to FastAPI, which takes
longer and says what is wrong.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from json import JSONDecodeError
from typing import Any

from fastapi import Response
from pydantic import BaseModel, ValidationError
from starlette.routing import BaseRoute

from app.api.hot_bodies import HOT_BODIES, HotReader
from app.api.json_body import JsonRoute, decode_body
from app.domain.errors import ContentTooLarge
from app.domain.identifiers import TASK_ID_MAX_LENGTH, TENANT_MAX_LENGTH, is_name
from app.service.batcher import IsGone
from app.service.tasks import TaskService

TAKES = frozenset({"body", "task_id", "tenant_id", "tasks", "is_gone"})

# A path without an id, or what stands before and behind the id.
Place = str | tuple[str, str]
Arguments = dict[str, Any]


class HotRoute(JsonRoute):
    """Its function takes nothing but what `TAKES` names."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        takes = frozenset(inspect.signature(endpoint).parameters)
        if not takes <= TAKES:
            raise TypeError(f"{endpoint.__name__} takes more than a hot route can give")
        model: type[BaseModel] = inspect.get_annotations(endpoint)["body"]
        self._hot = HotReader(model) if model in HOT_BODIES else None
        self._validate = model.__pydantic_validator__.validate_python
        self._takes_id = "task_id" in takes

    def read(self, body: bytes, task_id: str, tenant_id: str) -> Arguments | None:
        """What the request says, checked; or None if it is not sound."""
        if not is_name(tenant_id, TENANT_MAX_LENGTH):
            return None
        arguments: Arguments = {"tenant_id": tenant_id}
        if self._takes_id:
            if not is_name(task_id, TASK_ID_MAX_LENGTH):
                return None
            arguments["task_id"] = task_id
        hot = None if self._hot is None else self._hot.read(body)
        sound = hot or self._read_declared(body)
        if sound is None:
            return None
        arguments["body"] = sound
        return arguments

    def _read_declared(self, body: bytes) -> BaseModel | None:
        try:
            sound: BaseModel = self._validate(decode_body(body))
            return sound
        except (JSONDecodeError, ValidationError, ContentTooLarge):
            return None

    def answer(self, arguments: Arguments, tasks: TaskService, is_gone: IsGone) -> Awaitable[Response]:
        answer: Awaitable[Response] = self.endpoint(tasks=tasks, is_gone=is_gone, **arguments)
        return answer


class HotRoutes:
    """Finds the hot route of a path by looking it up."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._routes = {_place(route.path): route for route in routes if isinstance(route, HotRoute)}

    def find(self, path: str) -> tuple[HotRoute, str] | None:
        """The route, and the id that stands in the path."""
        if (route := self._routes.get(path)) is not None:
            return route, ""
        before, _, behind = path.rpartition("/")
        before, _, task_id = before.rpartition("/")
        route = self._routes.get((before, behind))
        return None if route is None else (route, task_id)


def _place(path: str) -> Place:
    before, parameter, behind = path.partition("/{task_id}/")
    return (before, behind) if parameter else path
