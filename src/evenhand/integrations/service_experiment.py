"""An experiment of a scoring service, read over HTTP: `URL/experiments/ID`."""

from collections import defaultdict
from typing import Any
from urllib.parse import quote

from evenhand.client.addresses import split_address
from evenhand.client.service import ServiceClient
from evenhand.core.errors import Incomparable, InputError
from evenhand.core.jsontext import canonical
from evenhand.core.outcome import Outcome, Scored, Unscored
from evenhand.core.secret import Secret
from evenhand.integrations.foreign_json import as_dict, as_number, as_text
from evenhand.integrations.port import ImportedRun, ImportedSample
from evenhand.metrics.exact import exact_mean

COMPUTED_BY = "computed by"
"""The key under which a scorer's identity stands."""
UNKNOWN = "an unknown version"
"""The identity of scores that were submitted or stored by an older release."""


def is_address(text: str) -> bool:
    """Whether `text` names something on a service rather than a file."""
    return text.startswith(("http://", "https://"))


def read_experiment(address: str, token: Secret | None) -> ImportedRun:
    """The runs of the experiment with every numeric score; two scores of one scorer on one run are averaged."""
    found = split_address(address, "experiments")
    if found is None:
        raise InputError(f"'{address}' names no experiment; expected http://HOST:PORT/experiments/ID")
    url, experiment_id = found
    with ServiceClient(url, token) as client:
        about = client.get(f"/v1/experiments/{quote(experiment_id)}")
        # Items that came later were not there to be run.
        items = {
            item["id"]: item
            for item in client.dataset_items(about["dataset_id"], about.get("dataset_version"))
            if item["created_at"] <= about["created_at"]
        }
        runs = list(client.listed(f"/v1/experiments/{quote(experiment_id)}/runs"))
    names = sorted({score["scorer_name"] for run in runs for score in run["scores"]})
    identities: dict[str, set[str]] = defaultdict(set)
    samples = [
        ImportedSample(
            item=item,
            outcomes={name: Unscored(reason="no_run", message="the item was not run") for name in names},
        )
        for item in items.keys() - {run["dataset_item_id"] for run in runs}
    ]
    for run in runs:
        values: dict[str, list[float]] = defaultdict(list)
        for score in run["scores"]:
            number = as_number(score["value"])
            if number is not None and not isinstance(score["value"], bool):
                values[score["scorer_name"]].append(number)
            identities[score["scorer_name"]].add(_identity(score))
        outcomes: dict[str, Outcome] = {
            name: Scored(value=float(exact_mean(values[name])))
            if values[name]
            else Unscored(reason="no_score", message="the service has no number of this scorer for the run")
            for name in names
        }
        samples.append(
            ImportedSample(
                item=run["dataset_item_id"],
                repeat=run.get("repeat", 0),
                output=as_text(run.get("output")),
                expected=items.get(run["dataset_item_id"], {}).get("expected_output"),
                outcomes=outcomes,
                metadata=as_dict(items.get(run["dataset_item_id"], {}).get("metadata")),
            )
        )
    if not runs:
        raise InputError(f"the experiment {experiment_id} has no runs")
    mixed = sorted(name for name, found in identities.items() if len(found) > 1)
    if mixed:
        raise Incomparable(
            [
                f"the experiment {about['name']} mixes versions or options of {name}, or values of unknown version "
                "and computed ones"
                for name in mixed
            ]
        )
    return ImportedRun(
        tool="service",
        name=f"dataset {about['dataset_id']}",
        treatment={"experiment": about["name"], **as_dict(about.get("metadata"))},
        scorers={
            name: {COMPUTED_BY: identity}
            for name, found in identities.items()
            if (identity := next(iter(found))) != UNKNOWN
        },
        samples=samples,
    )


def _identity(score: dict[str, Any]) -> str:
    """What made a score; submitted values and those of older releases do not tell."""
    if score.get("canonical_name") is None:
        return UNKNOWN
    fields = ("canonical_name", "scorer_version", "scorer_options")
    return canonical([score[field] for field in fields]).decode()
