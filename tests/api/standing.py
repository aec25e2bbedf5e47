"""A tenant whose tasks stand for all states, to see that a refused request changes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.api.caller import Caller

# Stands for the token of the task `leased`.
TOKEN = "<the token>"


class Standing:
    """Tasks of the ids `ready`, `scheduled`, `leased` and `dead`, and what they looked like last."""

    def __init__(self, api: Caller) -> None:
        api.enqueue_many({"id": "ready", "dedupe_key": "key"}, {"id": "scheduled", "delay_seconds": 3600})
        api.die(id="dead", queue="other")
        self._token = str(api.lease(id="leased", queue="other", lease_seconds=43200)["lease_token"])
        self.api = api
        self._last = api.everything()

    def body(self, value: Any) -> Any:
        """A body with the token in the places that it has."""
        if isinstance(value, Mapping):
            return {name: self.body(item) for name, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self.body(item) for item in value]
        return self._token if value == TOKEN else value

    def content(self, text: str) -> str:
        """A body as text, likewise."""
        return text.replace(TOKEN, self._token)

    def check_unchanged(self) -> None:
        """Nothing was changed since this was asked last."""
        before, self._last = self._last, self.api.everything()
        assert self._last == before
