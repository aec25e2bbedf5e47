"""Whether the queue can be used."""

from app.domain.doctor import Diagnosis
from app.repository.protocol import Repository


class HealthService:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def check(self) -> None:
        """Raises `Unavailable` unless the database answers and has this version's schema."""
        await self._repository.check()

    async def diagnose(self) -> Diagnosis:
        """What is well with the database and what is not, for a queue."""
        return await self._repository.diagnose()
