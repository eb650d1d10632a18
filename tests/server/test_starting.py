"""Section 9 of the contract: `evenhand serve` as a process, from its first start to its stop."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.service_harness import Client

from evenhand.cli.serve import command
from evenhand.core.errors import EvenhandError
from evenhand.server.jobs.judge_models import JudgeModels

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
SECONDS = 120.0


class Started:
    """A server process: what it printed, and where it is."""

    def __init__(self, process: "subprocess.Popen[str]", printed: str) -> None:
        self.process = process
        self.printed = printed

    def found(self, pattern: str) -> str | None:
        match = re.search(pattern, self.printed)
        return match[1] if match else None

    @property
    def address(self) -> str:
        address = self.found(r"listens on (\S+)")
        assert address is not None, self.printed
        return address


def _serve(folder: Path, options: list[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
    """With nothing of this machine's configuration: an empty home and only what the test sets."""
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand", "serve", *options],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def started(folder: Path, *options: str, **environment: str) -> Iterator[Started]:
    process = _serve(folder, list(options), environment)
    printed = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            printed += line
            if line.startswith("Reference"):
                break
        server = Started(process, printed)
        client = Client(server.address, None)
        deadline = time.monotonic() + SECONDS
        while client.get("/readyz").status != 200:
            assert time.monotonic() < deadline
        client.close()
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=300)
        assert "Traceback" not in errors, errors
    assert process.returncode == 0


def refused(folder: Path, *options: str, **environment: str) -> str:
    """What a server says that does not start."""
    process = _serve(folder, list(options), environment)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode in (64, 65, 66, 69, 78), (process.returncode, printed, errors)
    assert printed == ""
    return errors


def status(server: Started, token: str, **headers: str) -> int:
    client = Client(server.address, token)
    try:
        return client.request("GET", "/v1/projects", headers=headers).status
    finally:
        client.close()


def test_the_first_start_prints_address_token_and_login_link_and_the_second_no_token(
    tmp_path: Path, database_url: str
) -> None:
    with started(tmp_path, "--port", "0", "--database", database_url) as server:
        token = server.found(r"Admin token, shown once: (\S+)")
        link = server.found(r"works once\): \S+?(/login\?code=\S+)")
        assert token is not None
        assert link is not None
        assert status(server, token) == 200
        client = Client(server.address, None)
        assert client.get(link).status == 303
        assert client.get(link).status == 401
        client.close()
    with started(tmp_path, "--port", "0", "--database", database_url) as server:
        assert "token" not in server.printed
        assert "/login?code=" in server.printed
        assert status(server, token) == 200


def test_with_no_configuration_everything_is_in_the_users_data_folder(tmp_path: Path) -> None:
    with started(tmp_path, EVENHAND_PORT="0") as server:
        assert (tmp_path / ".local" / "share" / "evenhand" / "evenhand.db").exists()
        assert server.address.startswith("http://127.0.0.1:")


def test_a_bad_configuration_does_not_use_up_the_token_of_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text("not toml [")
    database = ("--port", "0", "--database", "sqlite:///e.db")
    assert "models.toml" in refused(tmp_path, *database, "--config", "models.toml")
    with started(tmp_path, *database) as server:
        token = server.found(r"Admin token, shown once: (\S+)")
        assert token is not None
        assert status(server, token) == 200


def test_a_projects_token_does_not_stand_for_the_administrators(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "evenhand", "token", "create", "--project", "p", "--database", "e.db"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr
    with started(tmp_path, "--port", "0", "--database", "e.db") as server:
        assert "Admin token, shown once" in server.printed


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.2", "192.0.2.1"])
def test_another_address_than_loopback_is_refused_while_there_are_no_tokens(
    tmp_path: Path, host: str
) -> None:
    said = refused(tmp_path, "--host", host, "--port", "0", "--database", "e.db")
    assert f"refusing to listen on {host} without tokens" in said


def test_with_tokens_another_address_is_listened_on(tmp_path: Path) -> None:
    more = {
        "EVENHAND_ADMIN_TOKEN": "chosen-by-an-operator",
        "EVENHAND_HOST": "127.0.0.2",
        "EVENHAND_PORT": "0",
    }
    with started(tmp_path, "--database", "e.db", **more) as server:
        assert server.address.startswith("http://127.0.0.2:")
        assert "token" not in server.printed
        assert status(server, "chosen-by-an-operator") == 200
        assert status(server, "wrong") == 401


def test_every_setting_is_also_in_the_environment(tmp_path: Path) -> None:
    """All of them at once, without one option."""
    (tmp_path / "models.toml").write_text('[models.a]\nbase_url = "http://h.example/v1"\nmodel = "x"\n')
    with started(
        tmp_path,
        EVENHAND_HOST="127.0.0.1",
        EVENHAND_PORT="0",
        EVENHAND_DATABASE="sqlite:///mine.db",
        EVENHAND_ADMIN_TOKEN="chosen-by-an-operator",
        EVENHAND_ALLOWED_HOSTS="scores.example, 127.0.0.1",
        EVENHAND_CONFIG="models.toml",
        EVENHAND_DEMO="on",
        EVENHAND_LOG_LEVEL="debug",
    ) as server:
        assert (tmp_path / "mine.db").exists()
        assert "project 'demo'" in server.printed
        assert status(server, "chosen-by-an-operator", Host="scores.example") == 200
        assert status(server, "chosen-by-an-operator", Host="other.example") == 400
        client = Client(server.address, "chosen-by-an-operator")
        body = {"target_id": "x", "target_type": "run", "scorer_name": "llm_judge"}
        reply = client.post(
            "/v1/scores", {**body, "config": {"model": "b", "prompt_template": "{{input}}{{output}}"}}
        )
        assert reply.body["error"]["details"]["known"] == ["a"]
        client.close()


def test_every_option_has_a_row_with_its_variable_on_the_page() -> None:
    options = {option for parameter in command.params for option in parameter.opts} - {"--help", "-h"}
    for option in options:
        assert re.search(rf"\| `{option}` \| `EVENHAND_[A-Z_]+` \|", PAGE), option


@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "x"), ("PORT", "70000"), ("DEMO", "perhaps"), ("LOG_LEVEL", "loud")]
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    assert f"EVENHAND_{name} is '{value}'" in refused(tmp_path, **{f"EVENHAND_{name}": value})


MODEL = '[models.small]\nbase_url = "http://h.example/v1"\nmodel = "x"\n'


@pytest.mark.parametrize(
    "line",
    [
        "timeout = -1",
        "timeout = nan",
        "timeout = 0",
        "tries = 0",
        "concurrency = 0",
        "concurrency = 1.5",
        "requests_per_minute = 0",
        "tokens_per_minute = -1",
        "spend_cap_usd = -1",
        "spend_cap_usd = 1",
        "input_usd = 1",
        "output_usd = inf",
        "key = 'secret'",
        "dialect = 'other'",
        "allow_private = 'yes'",
        "[jobs]\nlease_seconds = 0",
        "[jobs]\nconcurrency = -1",
    ],
)
def test_a_judge_model_that_cannot_be_is_refused_and_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(MODEL)
    assert JudgeModels.configured(path).names == ["small"]
    path.write_text(MODEL + line)
    with pytest.raises(EvenhandError, match=r"models\.toml|model 'small'"):
        JudgeModels.configured(path)


def test_judge_models_come_from_the_environment_where_there_is_no_file(tmp_path: Path) -> None:
    assert JudgeModels.configured(None, MODEL).names == ["small"]
    assert JudgeModels.configured(None, "").names == []
    with pytest.raises(EvenhandError, match="EVENHAND_MODELS"):
        JudgeModels.configured(None, "models = 5")
    path = tmp_path / "models.toml"
    path.write_text(MODEL.replace("small", "other"))
    assert JudgeModels.configured(path, MODEL).names == ["other"]


def test_logs_are_JSON_lines_without_payloads_and_secrets(tmp_path: Path) -> None:
    """What is written at the level debug when every field of good and bad requests holds a word."""
    canary = "planted-canary"
    process = _serve(
        tmp_path,
        ["--port", "0", "--database", "e.db", "--log-level", "debug"],
        {"EVENHAND_ADMIN_TOKEN": f"{canary}-token"},
    )
    assert process.stdout is not None
    address = re.search(r"listens on (\S+)", process.stdout.readline())
    assert address is not None
    client = Client(address[1], f"{canary}-token", canary)
    try:
        dataset, [item] = client.dataset([{"input": canary, "expected_output": canary}], name=canary)
        experiment = client.experiment(dataset, metadata={canary: canary})
        scores = [{"scorer_name": canary, "value": canary, "rationale": canary}]
        [run] = client.runs(experiment, [{"dataset_item_id": item, "output": canary, "scores": scores}])
        trace_id, _ = client.trace(
            id=canary, trace_id=canary, name=canary, input=canary, output=canary, model=canary,
            metadata={canary: canary}, error={"message": canary}, scores=scores,
        )  # fmt: skip
        client.post("/v1/annotations", {"trace_id": trace_id, "annotator": canary, "notes": canary})
        client.post("/v1/scores", {"target_id": run, "target_type": "run", "scorer_name": canary, "value": 7})
        client.post("/v1/scores", {"target_id": canary, "target_type": canary})
        client.post_raw("/v1/datasets", canary.encode())
        client.post_raw("/v1/traces", canary.encode(), "application/x-protobuf")
        client.post_raw("/v1/traces", f'{{"{canary}": '.encode())
        client.post_raw(f"/v1/datasets/{dataset}/items/import", canary.encode(), "application/x-ndjson")
        client.get(f"/v1/{canary}?{canary}={canary}", cursor=canary)
        client.get("/v1/traces", project_id=canary, cursor=canary, name=canary)
        client.request("GET", "/v1/projects", headers={"X-Canary": canary, "Cookie": canary})
        nobody = client.again(token=f"evh_{canary}_{canary}")
        nobody.get(f"/login?code={canary}")
        nobody.get("/v1/projects")
        nobody.close()
        metrics = client.get("/metrics").raw.decode()
    finally:
        client.close()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=300)
    lines = [json.loads(line) for line in log.splitlines()]
    assert len(lines) > 15
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert canary not in log
    assert canary not in metrics


@pytest.mark.parametrize(("host", "length"), [("127.0.0.1", 4_097), ("0.0.0.0", 15)])
def test_the_length_of_the_administrators_token_is_bounded(host: str, length: int, tmp_path: Path) -> None:
    """Too long for a header, or short enough to be guessed by others: one sentence, and nothing is made."""
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "serve", "--host", host, "--port", "0", "--database", "e.db"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "EVENHAND_ADMIN_TOKEN": "a" * length},
    )
    assert done.returncode == 64, done.stderr
    assert f"EVENHAND_ADMIN_TOKEN has {length:,} characters: at most 4,096 are taken" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "e.db").exists()
