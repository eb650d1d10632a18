"""The process for work that could take for ever: replies that come together, and a machine that is busy elsewhere."""

import array
import fcntl
import os
import signal
import subprocess
import termios
import threading
import time

from tests.ab_suites import wait_for

from evenhand.scoring.worker import Worker

WRONG = [{"type": "string"}, 1]


def process_of(worker: Worker) -> "subprocess.Popen[bytes]":
    process = worker._process
    assert process is not None
    return process


def waiting(worker: Worker) -> int:
    """Bytes that the worker has sent and nobody has read."""
    pipe = process_of(worker).stdout
    assert pipe is not None
    found = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, found)
    return found[0]


def test_two_replies_in_one_piece_are_two_replies() -> None:
    worker = Worker("evenhand.scoring.schema_worker", time_limit=2.0)
    try:
        for _ in range(3):
            with worker.ask(WRONG) as reply:
                wait_for(lambda: waiting(worker) > len(b'{"valid":false}\n'))
                assert reply() == {"valid": False}
                assert reply() == {"errors": ['the value: 1 is not of type "string"']}
    finally:
        worker.close()


def test_time_that_the_machine_gives_to_others_does_not_count() -> None:
    worker = Worker("evenhand.scoring.schema_worker", time_limit=2.0)
    try:
        with worker.ask(WRONG) as reply:
            reply(), reply()
        pid = process_of(worker).pid
        started = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(4.0, os.kill, (pid, signal.SIGCONT)).start()
        with worker.ask(WRONG) as reply:
            assert reply() == {"valid": False}
        assert time.monotonic() - started > 2.0, "it stood still past its limit"
    finally:
        worker.close()
