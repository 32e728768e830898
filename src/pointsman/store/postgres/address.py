"""Where a PostgreSQL store is: the address an operator writes, as the driver wants it.

    postgresql://user:password@host:5432/database?schema=name&patience=30&sslmode=require

Everything but `schema` and `patience` is libpq's: parameters of the address, `PG*` variables, the password file.
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
"""How long a server that cannot be reached is waited for."""
OURS: Final = frozenset({"schema", "patience"})
PATIENCE: Final = re.compile(r"\d{1,4}(\.\d{1,3})?")
DEFAULTS: Final = {
    "application_name": "pointsman",
    "connect_timeout": "10",
    # A server that vanished without a word is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """What the driver is given, and what people are shown."""

    conninfo: str
    schema: str
    """Made where it does not exist; empty: the one the server chooses."""
    shown: str
    patience_s: float = PATIENCE_S
    """How long a server that went away is waited for, by each call."""

    def within(self, schema: str) -> str:
        """The parameters of a connection that sees this schema and no other."""
        given = conninfo_to_dict(self.conninfo).get("options") or ""
        path = '"' + schema.replace('"', '""') + '"'
        escaped = re.sub(r"([\\\s])", r"\\\1", path)
        return make_conninfo(self.conninfo, options=f"{given} -c search_path={escaped}".strip())


def address_of(url: str) -> Address:
    """Raises `StoreUnknown` for what is not such an address, without its password."""
    shown = masked(url).partition("?")[0]
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = urlencode([pair for pair in pairs if pair[0] not in OURS], quote_via=quote)
        # What is no number is refused here, not when somebody connects.
        _ = parts.port
        given = conninfo_to_dict(urlunsplit(("postgresql", parts.netloc, parts.path, query, "")))
    except (ValueError, psycopg.Error):
        # What the parser says may quote what it could not parse: the password among it.
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
    # An empty value would be a wish of its own: `host=` is not the same as no host.
    conninfo = make_conninfo("", **{**DEFAULTS, **{key: value for key, value in given.items() if value}})
    return Address(conninfo, schema, shown, float(patience))
