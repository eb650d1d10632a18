"""The shared commit: one bad piece of work disturbs no other, on both databases."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from evenhand.core.errors import Refusal, SchemaMismatch
from evenhand.store.connection import Connection
from evenhand.store.database import READERS, open_database
from evenhand.store.projects import create_project, list_projects


def test_a_refused_piece_of_work_leaves_the_rest_of_its_group_alone(database_url: str) -> None:
    database = open_database(database_url)

    def add(connection: Connection, name: str) -> str:
        create_project(connection, project_id=name, name=name)
        if name.endswith("7"):
            raise Refusal("CONFLICT", "seven")
        return name

    async def all_at_once() -> list[str | BaseException]:
        work = [database.write(lambda c, n=n: add(c, f"p{n:03}")) for n in range(100)]  # type: ignore[misc]
        return await asyncio.gather(*work, return_exceptions=True)

    try:
        results = asyncio.run(all_at_once())
        kept = database.read_now(lambda c: list_projects(c, scope=None, after=None, limit=1000))
    finally:
        database.close()
    assert sum(isinstance(r, Refusal) for r in results) == 10
    assert len(kept) == 90
    assert database.writer.commit_count < database.writer.write_count


def test_a_reader_cannot_write(database_url: str) -> None:
    database = open_database(database_url)
    try:
        with pytest.raises(Exception, match="read"):
            database.read_now(lambda c: create_project(c, project_id="x", name="x"))
        assert database.read_now(lambda c: list_projects(c, scope=None, after=None, limit=10)) == []
    finally:
        database.close()


def test_a_newer_schema_is_refused_with_its_own_exit_status(database_url: str) -> None:
    database = open_database(database_url)
    database.write_now(
        lambda c: c.run(
            "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (9999, '9999_x.sql', '', '')"
        )
    )
    database.close()
    with pytest.raises(SchemaMismatch, match="9999_x") as caught:
        open_database(database_url)
    assert caught.value.exit_status == 78


def test_what_is_asked_together_shares_a_commit(database_url: str) -> None:
    database = open_database(database_url)

    async def together(count: int) -> None:
        await asyncio.gather(*(database.write(lambda c: c.one("SELECT 1")) for _ in range(count)))

    try:
        for count, commits in ((1, 1), (50, 1), (1_000, 1), (2_500, 3)):
            before = database.writer.commit_count
            asyncio.run(together(count))
            assert database.writer.commit_count == before + commits
    finally:
        database.close()


def test_work_is_done_although_its_loop_ended_at_once(database_url: str) -> None:
    database = open_database(database_url)
    done = threading.Event()
    loop = asyncio.new_event_loop()

    def work(connection: Connection, items: Sequence[int]) -> Sequence[int]:
        done.set()
        return items

    def submit() -> None:
        database.writer.submit_item(work, 1)
        loop.stop()  # the loop does not go round again to wake the writer

    try:
        loop.call_soon(submit)
        loop.run_forever()
        loop.close()
        assert done.wait(60)
    finally:
        database.close()


def test_many_loops_at_once_and_a_close_in_between(database_url: str) -> None:
    database = open_database(database_url)
    done: list[int] = []
    results: list[int] = []

    def work(connection: Connection, items: Sequence[int]) -> Sequence[int]:
        done.extend(items)
        return items

    async def write(first: int) -> None:
        for start in range(first, first + 400, 8):
            futures = [database.writer.submit_item(work, n) for n in range(start, start + 8)]
            results.extend(await asyncio.gather(*futures))

    threads = [threading.Thread(target=asyncio.run, args=(write(first),)) for first in range(0, 2_000, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == sorted(results) == list(range(2_000))

    async def write_and_close() -> list[int]:
        futures = [database.writer.submit_item(work, n) for n in range(2_000, 4_500)]
        await asyncio.to_thread(database.close)
        return list(await asyncio.gather(*futures))

    assert asyncio.run(write_and_close()) == list(range(2_000, 4_500))


def test_reading_goes_on_while_long_questions_wait(database_url: str) -> None:
    """More of them than there are readers: the last are not even asked before the first are answered."""
    database = open_database(database_url)
    answered = threading.Event()

    def long(_: Connection) -> bool:
        return answered.wait(60)

    async def ask() -> list[bool]:
        waiting = [asyncio.ensure_future(database.search(long)) for _ in range(2 * READERS)]
        await asyncio.sleep(0)
        try:
            assert await database.read(lambda connection: connection.one("SELECT 1")) == (1,)
            assert not any(one.done() for one in waiting)
        finally:
            answered.set()
        return await asyncio.gather(*waiting)

    try:
        assert asyncio.run(ask()) == [True] * 2 * READERS
    finally:
        database.close()
