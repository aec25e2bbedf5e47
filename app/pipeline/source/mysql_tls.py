"""What a MySQL URL says about encryption, for both drivers: it means what the service's driver takes it for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.pipeline.errors import PipelineError
from app.pipeline.source.database import Address

SWITCH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Tls:
    """No encryption unless one is asked for; with a `ca` the server must have a certificate of it, and of its name."""

    wanted: bool
    ca: str | None = None
    check_hostname: bool = True

    @classmethod
    def of(cls, address: Address) -> "Tls":
        """Raises `PipelineError` for a URL that cannot be understood."""
        ca, check = address.option("ssl_ca"), address.option("ssl_check_hostname")
        if check is not None and check.lower() not in SWITCH:
            raise PipelineError("the option ssl_check_hostname of the database URL must be true or false")
        if ca is not None and not Path(ca).is_file():
            raise PipelineError(f"there is no file {ca}, which the database URL names as its ssl_ca")
        return cls(ca is not None or check is not None, ca, SWITCH[check.lower()] if check else True)

    def for_asyncmy(self) -> dict[str, Any]:
        if not self.wanted:
            return {}
        # Without authorities there is nothing to check a certificate against.
        return {"ssl": {"ca": self.ca, "check_hostname": self.check_hostname} if self.ca else True}

    def for_connectorx(self) -> dict[str, str]:
        if not self.wanted:
            return {}
        if self.ca is None:
            return {"ssl-mode": "required"}
        return {"ssl-mode": "verify_identity" if self.check_hostname else "verify_ca", "ssl-ca": self.ca}
