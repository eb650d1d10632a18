"""What judge models have cost so far: a spend cap holds across restarts and servers."""

from evenhand.store.connection import Connection


def spent_on(connection: Connection, model: str) -> int:
    """Picodollars so far."""
    row = connection.one("SELECT spent_pico FROM judge_spend WHERE model = ?", model)
    return 0 if row is None else int(row[0])


def add_spent(connection: Connection, model: str, pico: int) -> None:
    """Book what calls cost."""
    connection.run(
        "INSERT INTO judge_spend (model, spent_pico) VALUES (?, ?)"
        " ON CONFLICT (model) DO UPDATE SET spent_pico = judge_spend.spent_pico + excluded.spent_pico",
        model,
        pico,
    )
