"""Calls of the scoring service: one keep-alive connection, retries where they are safe, errors as one type."""

import http.client
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from evenhand.core import jsontext
from evenhand.core.errors import InputError, OptionError, ServiceError
from evenhand.core.ids import new_id
from evenhand.core.secret import Secret, without_password

TRIES = 4
"""Requests per call, the first included."""
RETRIED = frozenset({429, 502, 503, 504})
PAGE = 200


class ServiceClient:
    """One service and one token. Not for several threads at once."""

    def __init__(self, url: str, token: Secret | None = None, *, timeout: float = 30.0) -> None:
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port out of range, half an IPv6 address
            sound = False
        if not sound:
            raise OptionError(f"'{without_password(url)}' is not the address of a service")
        if parts.username is not None or parts.password is not None:
            raise OptionError(
                "the service's address carries a user name or password; give its token with an option or EVENHAND_TOKEN"
            )
        self.url = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._parts = parts
        self._token = token
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "ServiceClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str, **query: Any) -> Any:
        """The answer to a question."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", f"{path}?{urlencode(given)}" if given else path, None, {})

    def post(self, path: str, body: Any, *, key: str | None = None) -> Any:
        """The answer to a change; `key` makes a repeated call the same call."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or new_id()}
        return self._call("POST", path, jsontext.encode(body), headers)

    def listed(self, path: str, **query: Any) -> Iterator[Any]:
        """Every item of a list, page by page."""
        cursor = None
        while True:
            page = self.get(path, limit=PAGE, cursor=cursor, **query)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def find_dataset(self, project: str, name: str) -> Any | None:
        """The dataset of that name, or None."""
        return next(
            (one for one in self.listed("/v1/datasets", project_id=project) if one["name"] == name), None
        )

    def create_dataset(
        self, project: str, name: str, items: Iterable[Mapping[str, Any]], description: str = ""
    ) -> Any:
        """A new dataset with these items (`input`, `expected_output`, `metadata`)."""
        made = self.post("/v1/datasets", {"project_id": project, "name": name, "description": description})
        body = b"".join(jsontext.encode(item) + b"\n" for item in items)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": new_id()}
        report = self._call("POST", f"/v1/datasets/{quote(made['id'])}/items/import", body, headers)
        if report["skipped_count"]:
            raise ServiceError(
                f"{report['skipped_count']} items were refused: {report['skipped'][0]['reason']}"
            )
        return made

    def dataset_items(self, dataset_id: str, version: int | None = None) -> Iterator[Any]:
        """Every item of a dataset, or of one of its versions."""
        narrow = {} if version is None else {"version": str(version)}
        return self.listed(f"/v1/datasets/{quote(dataset_id)}/items", **narrow)

    def create_experiment(
        self, project: str, name: str, dataset_id: str, metadata: Mapping[str, Any], *, key: str | None = None
    ) -> Any:
        """A new experiment, which stays open until `complete_experiment`."""
        body = {
            "project_id": project,
            "name": name,
            "dataset_id": dataset_id,
            "metadata": dict(metadata),
            "auto_complete": False,
        }
        return self.post("/v1/experiments", body, key=key)

    def submit_runs(self, experiment_id: str, runs: list[dict[str, Any]], *, key: str | None = None) -> Any:
        """Runs with their scores: all or none."""
        return self.post(f"/v1/experiments/{quote(experiment_id)}/runs", {"runs": runs}, key=key)

    def complete_experiment(self, experiment_id: str, *, key: str | None = None) -> Any:
        """Nothing more will come."""
        return self.post(f"/v1/experiments/{quote(experiment_id)}/complete", {}, key=key)

    def experiment_summary(self, experiment_id: str) -> Any:
        """What an experiment came to."""
        return self.get(f"/v1/experiments/{quote(experiment_id)}/summary")

    def create_score(
        self,
        target_id: str,
        scorer_name: str,
        value: float | str | None = None,
        *,
        target_type: str = "run",
        rationale: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Any:
        """A score of a run or span; without a value the service computes it."""
        given = {
            "target_id": target_id,
            "target_type": target_type,
            "scorer_name": scorer_name,
            "value": value,
            "rationale": rationale,
            "config": config,
        }
        body = {name: one for name, one in given.items() if one is not None}
        return self.post("/v1/scores", body)

    def _call(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Any:
        sent = dict(headers)
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token.reveal()}"
        wait = 0.2
        for attempt in range(1, TRIES + 1):
            try:
                status, data, retry_after = self._send(method, self._prefix + path, body, sent)
            except (OSError, http.client.HTTPException) as error:
                # Every change carries an idempotency key, so sending it again cannot do it twice.
                self.close()
                if attempt == TRIES:
                    raise ServiceError(
                        f"{self.url} cannot be reached ({_reason(error)}): is a scoring service running there?"
                    ) from None
            else:
                if status not in RETRIED or attempt == TRIES:
                    return self._answer(status, data)
                wait = max(wait, min(retry_after, 5.0))
            time.sleep(wait)
            wait *= 2
        raise AssertionError("unreachable")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        if self._connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        self._connection.request(method, path, body=body, headers=dict(headers))
        response = self._connection.getresponse()
        data = response.read()
        asked = response.getheader("Retry-After") or "0"
        return response.status, data, float(asked) if asked.isdigit() else 0.0

    def _answer(self, status: int, data: bytes) -> Any:
        try:
            answer = jsontext.decode(data)
        except InputError:
            raise ServiceError(
                f"{self.url} answered {status} and no JSON: is it a scoring service?"
            ) from None
        if 200 <= status < 300:
            return answer
        error = answer.get("error", {}) if isinstance(answer, dict) else {}
        code, message = error.get("code", "ERROR"), error.get("message", "")
        raise ServiceError(f"{self.url} answered {status} {code}: {message}", code=code, status=status)


def _reason(error: OSError | http.client.HTTPException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
