"""The journal survives whatever a crash leaves behind."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.core.outcome import Scored
from evenhand.evaluation.journal import Journal, StorageFailed
from evenhand.evaluation.ledger import GENERATED, PENDING, SCORED, Ledger
from evenhand.evaluation.records import Generated, Measured


def test_steps_come_back_as_they_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    first = Generated(key=0, text="né\n\u2028 \x00", input_tokens=3, at=1.5)
    second = Measured(key=0, outcome=Scored(value=0.5, extracted=[1], details={"a": None}))
    places = [journal.append(step) for step in (first, second)]
    assert [journal.read(place.offset, place.length) for place in places] == [first, second]
    assert [step for step, _ in journal.replay()] == [first, second]
    journal.close()


def test_lone_surrogates_do_not_stop_a_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(Generated(key=0, text="a\ud800b"))
    [(step, _)] = journal.replay()
    assert isinstance(step, Generated)
    assert step.text == "a?b"
    journal.close()


@pytest.mark.parametrize("cut", range(1, 100, 9))
def test_a_torn_last_line_is_cut_off_and_its_step_done_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for key in range(3):
        journal.append(Generated(key=key, text=f"answer {key}"))
        last = journal.append(Measured(key=key, outcome=Scored(value=1.0)))
    journal.close()
    os.truncate(path, path.stat().st_size - cut)
    journal = Journal(path)
    ledger = Ledger(journal, 3)
    assert list(ledger.state)[:2] == [SCORED, SCORED]
    assert ledger.state[2] == (GENERATED if cut <= last.length else PENDING)
    assert path.read_bytes().endswith(b"\n")
    journal.append(Generated(key=2, text="again"))
    journal.close()
    reopened = Journal(path)
    assert Ledger(reopened, 3).generation(2).text == "again"
    assert reopened.damaged_lines == 0
    reopened.close()


def test_a_damaged_line_costs_one_step_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    places = [journal.append(Generated(key=key, text="x" * 20)) for key in range(3)]
    journal.close()
    data = bytearray(path.read_bytes())
    data[places[1].offset : places[1].offset + 10] = b"\0" * 10
    path.write_bytes(data)
    journal = Journal(path)
    assert list(Ledger(journal, 3).state) == [GENERATED, PENDING, GENERATED]
    assert journal.damaged_lines == 1
    journal.close()


FILL = """
import resource, sys
from pathlib import Path
from evenhand.evaluation.journal import Journal, StorageFailed
from evenhand.evaluation.records import Generated
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
journal = Journal(Path(sys.argv[1]))
written = 0
try:
    while True:
        journal.append(Generated(key=written, text="y" * 400))
        written += 1
except StorageFailed as error:
    print(written, error)
"""


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    """The file size limit stands in for the disk: the write that crosses it is cut short in the same way."""
    path = tmp_path / "journal"
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(path)], capture_output=True, text=True, timeout=300
    )
    assert "cannot be written" in done.stdout, done.stderr
    assert "what was finished before is kept" in done.stdout
    written = int(done.stdout.split()[0])
    assert written >= 5
    journal = Journal(path)
    assert [step.key for step, _ in journal.replay()] == list(range(written))
    assert journal.damaged_lines == 0
    journal.close()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 3000, "only the child was limited"


def test_writing_to_a_folder_that_went_away_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Journal(tmp_path / "gone" / "journal")
    with pytest.raises(StorageFailed, match="cannot be written: the disk is full"):
        Journal(Path("/dev/full")).append(Generated(key=0, text="x"))
