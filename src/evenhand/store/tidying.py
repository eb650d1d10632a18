"""What is forgotten in time, in one transaction: idempotency keys, login links, browser sessions, texts without a span."""

from evenhand.store.connection import Connection
from evenhand.store.idempotency import forget_old
from evenhand.store.people import forget_ended
from evenhand.store.texts import forget_old_texts


def tidy(connection: Connection) -> None:
    """Forget what has run out."""
    forget_old(connection)
    forget_ended(connection)
    forget_old_texts(connection)
