"""`evenhand token` and `evenhand db`, on both databases."""

import json
import re
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.postgres import PostgresServer
from tests.real_parts import need
from tests.service import running_service

from evenhand.cli.app import command
from evenhand.core.errors import OptionError
from evenhand.store.database import open_database


def evenhand(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_tokens_are_made_listed_and_revoked(database_url: str) -> None:
    made = evenhand("token", "create", "--project", "p", "--database", database_url, "--format", "json")
    assert made.exit_code == 0, made.output
    token = json.loads(made.output)
    assert (token["role"], token["project_id"]) == ("write", "p")
    with running_service(database_url) as service:
        assert service.get("/v1/datasets", project_id="p", token=token["token"]).status == 200
    assert "Revoked" in evenhand("token", "revoke", token["id"], "--database", database_url).output
    listed = evenhand("token", "list", "--database", database_url)
    assert f"{token['id']}  write  p  revoked" in listed.output
    assert token["token"] not in listed.output
    with running_service(database_url) as service:
        assert service.get("/v1/datasets", project_id="p", token=token["token"]).status == 401


def test_case_27_a_name_that_came_over_HTTP_does_not_control_the_terminal(database_url: str) -> None:
    with running_service(database_url) as service:
        body = {"name": "\x1b]0;owned\x07\x9b31mred", "role": "read", "project_id": "p\x1b[2J"}
        assert service.post("/v1/tokens", body).status == 201
    listed = evenhand("token", "list", "--database", database_url).output
    assert "red" in listed
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", listed)


def test_a_token_for_all_projects_is_an_administrators(database_url: str) -> None:
    refused = evenhand("token", "create", "--role", "read", "--database", database_url)
    assert "needs the role 'admin'" in str(refused.exception)


def test_migrate_says_what_it_did(database_url: str) -> None:
    first = evenhand("db", "migrate", "--database", database_url)
    assert "Applied 0001_projects.sql" in first.output
    again = evenhand("db", "migrate", "--database", database_url)
    assert again.output == "The schema is up to date.\n"


def test_the_database_and_its_backup_are_for_their_owner_only(tmp_path: Path) -> None:
    file, copy = tmp_path / "e.db", tmp_path / "copy.db"
    with running_service(f"sqlite:///{file}"):
        assert evenhand("db", "backup", str(copy), "--database", f"sqlite:///{file}").exit_code == 0
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"e.db", "e.db-wal", "copy.db"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes


def test_a_backup_of_a_running_server_opens_as_a_database(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path / 'live.db'}", tmp_path / "copy.db"
    with running_service(url) as service:
        made = service.post("/v1/datasets", {"project_id": "p", "name": "d"}).body
        assert evenhand("db", "backup", str(copy), "--database", url).exit_code == 0
    with closing(sqlite3.connect(copy)) as opened:
        rows = opened.execute("SELECT id FROM datasets").fetchall()
    assert rows == [(made["id"],)]
    open_database(str(copy)).close()
    again = evenhand("db", "backup", str(copy), "--database", url)
    assert "exists already" in str(again.exception)


@pytest.mark.xdist_group("postgresql")
def test_a_backup_of_PostgreSQL_is_an_archive_to_restore(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    copy, program = tmp_path / "copy.dump", shutil.which("pg_restore")
    need(program is not None, "pg_restore (Debian package postgresql-client)")
    with postgres_server.database() as url, postgres_server.database() as other:
        with running_service(url) as service:
            made = service.post("/v1/datasets", {"project_id": "p", "name": "d"}).body
            assert evenhand("db", "backup", str(copy), "--database", url).exit_code == 0
        subprocess.run([str(program), "--dbname", other, str(copy)], check=True, timeout=300)
        checked = evenhand("db", "check", "--database", other)
        assert (checked.exit_code, checked.output) == (0, "Everything agrees with a recount.\n")
        with running_service(other) as service:
            assert service.get(f"/v1/datasets/{made['id']}").body == made


def test_tokens_are_made_and_revoked_beside_a_running_server_that_writes(database_url: str) -> None:
    with running_service(database_url) as service:
        done = threading.Event()
        statuses: set[int] = set()

        def write() -> None:
            while not done.is_set():
                statuses.add(service.post("/v1/projects", {"name": "x"}).status)

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            made = evenhand(
                "token", "create", "--project", "p", "--database", database_url, "--format", "json"
            )
            assert made.exit_code == 0, made.output
            token = json.loads(made.output)
            assert service.get("/v1/datasets", project_id="p", token=token["token"]).status == 200
            assert token["id"] in evenhand("token", "list", "--database", database_url).output
            assert evenhand("token", "revoke", token["id"], "--database", database_url).exit_code == 0
            assert service.get("/v1/datasets", project_id="p", token=token["token"]).status == 401
        finally:
            done.set()
            for writer in writers:
                writer.join()
        assert statuses == {201}
    assert evenhand("db", "check", "--database", database_url).exit_code == 0


def test_a_second_server_on_one_sqlite_file_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'live.db'}"
    with running_service(url):
        refused = evenhand("db", "migrate", "--database", url)
        assert "in use by another server" in str(refused.exception)


def test_a_slip_in_the_databases_name_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for slip in ("scores", "localhost/scores", "scores.json", "mysql://host/x", "sqlite:scores.db"):
        refused = evenhand("db", "migrate", "--database", slip)
        assert isinstance(refused.exception, OptionError), slip
        assert list(tmp_path.iterdir()) == []
    assert evenhand("db", "migrate", "--database", "scores.db").exit_code == 0
    assert (tmp_path / "scores.db").exists()
