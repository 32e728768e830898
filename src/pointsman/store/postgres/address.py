"""Address of a PostgreSQL store: converts the operator's URL for the driver.

    postgresql://user:password@host:5432/database?schema=name&patience=30&sslmode=require

Everything except `schema` and `patience` belongs to libpq: URL parameters, `PG*` variables, the password file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pointsman.store.addresses import masked
from pointsman.store.errors import StoreUnknown

SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
PATIENCE_S: Final = 15.0
"""How long to wait for a server that cannot be reached."""
OURS: Final = frozenset({"schema", "patience"})
PATIENCE: Final = re.compile(r"\d{1,4}(\.\d{1,3})?")
DEFAULTS: Final = {
    "application_name": "pointsman",
    "connect_timeout": "10",
    # A server that disappeared silently is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Connection parameters for the driver, and the address as shown to people."""

    conninfo: str
    schema: str
    """Schema, created if missing; empty: the server's default."""
    shown: str
    patience_s: float = PATIENCE_S
    """How long each call waits for a server that went away."""

    def within(self, schema: str) -> str:
        """Return the parameters of a connection that sees only this schema."""
        given = conninfo_to_dict(self.conninfo).get("options") or ""
        path = '"' + schema.replace('"', '""') + '"'
        escaped = re.sub(r"([\\\s])", r"\\\1", path)
        return make_conninfo(self.conninfo, options=f"{given} -c search_path={escaped}".strip())


def address_of(url: str) -> Address:
    """Parse an address. Raises `StoreUnknown`, without the password, for an invalid one."""
    shown = masked(url).partition("?")[0]
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = urlencode([pair for pair in pairs if pair[0] not in OURS], quote_via=quote)
        # A value that is not a number is rejected here, not at the first connection.
        _ = parts.port
        given = conninfo_to_dict(urlunsplit(("postgresql", parts.netloc, parts.path, query, "")))
    except (ValueError, psycopg.Error):
        # The parser's message may quote its input, including the password.
        raise StoreUnknown(
            f"{shown!r} is not the address of a PostgreSQL store",
            hint="Write postgresql://user:password@host/database; signs such as @ and / in a password as %40 and %2F.",
        ) from None
    own = dict(pairs)
    schema, patience = own.get("schema", ""), own.get("patience", str(PATIENCE_S))
    if schema and SCHEMA.fullmatch(schema) is None:
        raise StoreUnknown(
            f"{schema!r} is no name of a schema", hint="Use letters, digits and _, beginning with a letter."
        )
    if PATIENCE.fullmatch(patience) is None:
        raise StoreUnknown(f"{patience!r} is no number of seconds", hint="For half a minute write …?patience=30.")
    # An empty value has its own meaning: `host=` differs from no host.
    conninfo = make_conninfo("", **{**DEFAULTS, **{key: value for key, value in given.items() if value}})
    return Address(conninfo, schema, shown, float(patience))
