"""Our own `scores.jsonl`, as `evenhand score` writes it: a line per row with the outcomes of every scorer."""

from pathlib import Path
from typing import Any

import msgspec

from evenhand.core.errors import InputError
from evenhand.core.outcome import Outcome
from evenhand.integrations.foreign_json import as_dict, as_int, read_lines, read_object
from evenhand.integrations.port import ImportedRun, ImportedSample

_OUTCOME: Any = Outcome


class ScoresFile:
    """The importer. Rows are paired by `id`, else by the number of their line."""

    name = "scores"

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return (path / "scores.jsonl").exists() and not (path / "results.jsonl").exists()
        return head.startswith(b'{"line":') and b'"scores":{' in head

    def read(self, path: Path) -> list[ImportedRun]:
        if path.is_dir():
            path = path / "scores.jsonl"
        rows = list(read_lines(path))
        if not rows:
            raise InputError("there are no scores in it", path=path)
        by_id = all(row.get("id") is not None or row.get("problem_idx") is not None for _, row in rows)
        samples = [_sample(row, path, number, by_id) for number, row in rows]
        seen: set[tuple[str, int]] = set()
        for (number, _), sample in zip(rows, samples, strict=True):
            if (sample.item, sample.repeat) in seen:
                raise InputError(f"duplicate entry: id {sample.item}", path=path, line=number)
            seen.add((sample.item, sample.repeat))
        beside = path.with_suffix(".scorers.json")
        return [
            ImportedRun(
                tool="evenhand score",
                name="scores",
                treatment={"file": str(path.parent.name)},
                scorers=read_object(beside) if beside.exists() else {},
                samples=samples,
                unmapped=[]
                if by_id
                else ["the rows have no ids: they are paired by the numbers of their lines"],
            )
        ]


def _sample(row: dict[str, Any], path: Path, number: int, by_id: bool) -> ImportedSample:
    outcomes: dict[str, Outcome] = {}
    for name, value in as_dict(row.get("scores")).items():
        try:
            outcomes[name] = msgspec.convert(value, type=_OUTCOME)
        except msgspec.ValidationError as error:
            raise InputError(f"scorer {name}: {error}", path=path, line=number) from None
    place = row.get("line", number)
    if row.get("file"):
        place = f"{row['file']}:{place}"
    item = row.get("id", row.get("problem_idx")) if by_id else place
    return ImportedSample(
        item=str(item),
        repeat=as_int(row.get("repeat")) or 0,
        outcomes=outcomes,
        metadata={"category": row["category"]} if row.get("category") is not None else {},
    )
