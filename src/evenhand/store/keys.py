"""Keys of the database's own, made on first use and never shown."""

from evenhand.store.connection import Connection


def kept_key(connection: Connection, name: str, fresh: bytes) -> bytes:
    """The key of this name; `fresh` is kept when there is none. Servers that start together agree on one."""
    connection.run(
        "INSERT INTO own_keys (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, fresh.hex()
    )
    row = connection.one("SELECT value FROM own_keys WHERE name = ?", name)
    assert row is not None
    return bytes.fromhex(row[0])
