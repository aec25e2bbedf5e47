"""What a database URL says behind the `?` is honoured, or refused in a line."""

import asyncio
from pathlib import Path

import connectorx
import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.source.factory import find_database
from app.pipeline.source.mysql import MySQL
from app.pipeline.source.mysql_tls import Tls
from app.pipeline.source.postgresql import PostgreSQL
from app.repository.factory import connect_dialect
from app.repository.schema import migrate
from tests.conftest import MakeDatabase

CIPHER = "SELECT variable_value FROM performance_schema.session_status WHERE variable_name = 'Ssl_cipher'"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://host/db?ssl_cert=x.pem", "cannot honour the option ssl_cert of a mysql URL; it knows charset,"),
        ("mysql://host/db?unix_socket=/run/x", "cannot honour the option unix_socket"),
        ("mysql://host/db?ssl_ca=/nowhere/ca.pem", "there is no file /nowhere/ca.pem"),
        ("mysql://host/db?ssl_check_hostname=maybe", "ssl_check_hostname of the database URL must be true or false"),
        ("mysql://host/db?connect_timeout=soon", "connect_timeout of the database URL must be a number of seconds"),
        ("mysql://host/db?charset=utf8mb4&charset=latin1", "charset of the database URL is given more than once"),
        ("postgresql://host/db?sslrootcert=x", "cannot honour the option sslrootcert of a postgresql URL; it knows"),
        ("sqlite:///x.db?mode=ro&uri=true", "cannot honour the option mode of a sqlite URL; it knows timeout"),
    ],
)
def test_option_that_cannot_be_honoured(url: str, told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        find_database(url).check()


def test_timeout_of_sqlite_is_a_number(make_database: MakeDatabase) -> None:
    url = make_database("sqlite")
    asyncio.run(migrated(url))
    find_database(f"{url}?timeout=0.5").check()
    with pytest.raises(PipelineError, match="timeout of the database URL must be a number of seconds"):
        find_database(f"{url}?timeout=soon").check()


def test_postgresql_is_told_about_encryption(make_database: MakeDatabase) -> None:
    url = make_database("postgresql")
    asyncio.run(migrated(url))
    find_database(f"{url}?ssl=disable&prepared_statement_cache_size=0").check()
    for option in ("ssl", "sslmode"):
        database = find_database(f"{url}?{option}=verify-full")
        assert isinstance(database, PostgreSQL)
        assert "sslmode=verify-full" in database._uri()


@pytest.mark.parametrize(("options", "encrypted"), [("", False), ("?ssl_check_hostname=false", True)])
def test_mysql_is_read_encrypted_by_both_drivers(make_database: MakeDatabase, options: str, encrypted: bool) -> None:
    database = find_database(make_database("mysql") + options)
    assert isinstance(database, MySQL)
    [row] = connectorx.read_sql(database._url(), CIPHER, return_type="arrow").to_pylist()
    for cipher in (*row.values(), *database._fetch(CIPHER)[0]):
        assert cipher.startswith("TLS_") is encrypted


def test_certificate_is_checked_by_both_drivers(tmp_path: Path) -> None:
    (tmp_path / "c a.pem").write_text("x")
    ca = str(tmp_path / "c a.pem")
    by_name = Tls.of(find_database(f"mysql://host/db?ssl_ca={ca}").address)
    assert by_name.for_connectorx() == {"ssl-mode": "verify_identity", "ssl-ca": ca}
    assert by_name.for_asyncmy() == {"ssl": {"ca": ca, "check_hostname": True}}
    by_authority = Tls.of(find_database(f"mysql://host/db?ssl_ca={ca}&ssl_check_hostname=no").address)
    assert by_authority.for_connectorx() == {"ssl-mode": "verify_ca", "ssl-ca": ca}
    assert by_authority.for_asyncmy() == {"ssl": {"ca": ca, "check_hostname": False}}


async def migrated(url: str) -> None:
    dialect = connect_dialect(url)
    await migrate(dialect)
    await dialect.close()
