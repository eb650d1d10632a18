"""Programs that try to break out or to harm the machine, and for each a control: outside, the probe works.

The controls are harmless: a dozen forks, some hundred MB, files and processes of this test's own.
"""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand.sandbox.conformance import ROOMY
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import MEBIBYTE, Execution, Program, ResourceLimits

# Little of everything but time: how quick the machine is must not decide.
TIGHT = ResourceLimits(
    wall_seconds=100.0,
    cpu_seconds=60,
    memory_bytes=96 * MEBIBYTE,
    processes=6,
    output_bytes=100_000,
    disk_bytes=4 * MEBIBYTE,
)


def outside(source: str, *, timeout: float = 120, **options: object) -> "subprocess.CompletedProcess[bytes]":
    """The control: the same program as an ordinary process of this machine."""
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-I", "-c", source], capture_output=True, timeout=timeout, **options
    )


def number(text: bytes) -> int:
    return int(re.findall(rb"\d+", text)[-1])


FORKS = """
import os, signal, time
children = []
for _ in range(12):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(120)
        os._exit(0)
    children.append(pid)
print("children", len(children), flush=True)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


def test_forks_are_limited(any_limits: Pool) -> None:
    assert number(outside(FORKS).stdout) == 12
    found = any_limits.execute(Program(source=FORKS, limits=TIGHT))
    assert 0 < number(found.stdout) <= TIGHT.processes


# Each process says that it is there; none leaves before the first has counted them all.
TREE = """
import os
counted, here = os.pipe()
held, hold = os.pipe()
first = os.getpid()
for _ in range(4):
    try:
        child = os.fork() == 0
    except OSError:
        continue
    if child and hold is not None:
        os.close(hold)
        hold = None
os.write(here, b"x")
os.close(here)
if os.getpid() == first:
    with open(counted, "rb") as everyone:
        print("x" * len(everyone.read()), end="", flush=True)
else:
    os.read(held, 1)
"""


def test_a_tree_of_forks_is_limited_and_gone_afterwards(any_limits: Pool) -> None:
    assert len(outside(TREE).stdout) == 16
    found = any_limits.execute(Program(source=TREE, limits=TIGHT))
    assert 1 <= len(found.stdout) <= TIGHT.processes + 1


THREADS = """
import threading
stop = threading.Event()
started = 0
for _ in range(12):
    try:
        threading.Thread(target=stop.wait, args=(120,), daemon=True).start()
        started += 1
    except RuntimeError:
        break
print("threads", started, flush=True)
stop.set()
"""


def test_threads_are_limited(any_limits: Pool) -> None:
    assert number(outside(THREADS).stdout) == 12
    found = any_limits.execute(Program(source=THREADS, limits=TIGHT))
    assert number(found.stdout) <= TIGHT.processes


MEMORY = """
kept = []
for _ in range(50):
    kept.append(bytearray(b"x" * (8 << 20)))
print("kept", len(kept) * 8)
"""


def test_memory_is_limited_and_told_apart(any_limits: Pool) -> None:
    assert outside(MEMORY).stdout == b"kept 400\n"
    found = any_limits.execute(Program(source=MEMORY, limits=TIGHT))
    assert (found.ending, found.stdout) == ("memory_limit", b"")


SHARED_MEMORY = """
import mmap
kept = []
for _ in range(25):
    block = mmap.mmap(-1, 8 << 20)
    block.write(b"x" * (8 << 20))
    kept.append(block)
print("kept", len(kept) * 8)
"""


def test_shared_memory_is_limited(any_limits: Pool) -> None:
    assert outside(SHARED_MEMORY).stdout == b"kept 200\n"
    found = any_limits.execute(Program(source=SHARED_MEMORY, limits=TIGHT))
    assert found.stdout == b""
    assert found.exit_code != 0


NAMELESS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
try:
    os.close(os.memfd_create("kept"))
    print("memfd")
except OSError:
    print("refused")
number = libc.shmget(0, 4096, 0o1600)
print("refused" if number < 0 else "shmget")
if number >= 0:
    libc.shmctl(number, 0, None)
"""


def test_memory_that_only_a_control_group_would_count_is_refused(any_limits: Pool) -> None:
    assert outside(NAMELESS).stdout.split() == [b"memfd", b"shmget"]
    found = any_limits.execute(Program(source=NAMELESS, limits=TIGHT))
    assert found.stdout.split() == [b"refused", b"refused"]


# Memory that is held by the kernel for a program, and not by the program's own pages.
IN_THE_KERNEL = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)

def loopback():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass

def buffer():
    a, b = socket.socketpair()
    with a, b:
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

def attribute():
    with open("/tmp/evenhand-attribute", "w") as file:
        try:
            libc.fsetxattr.restype = ctypes.c_int
            if libc.fsetxattr(file.fileno(), b"user.x", b"x", 1, 0) and ctypes.get_errno() == 1:
                raise PermissionError
        finally:
            os.unlink("/tmp/evenhand-attribute")

def semaphores():
    number = libc.semget(0, 10, 0o1600)
    if number < 0:
        raise PermissionError
    libc.semctl(number, 0, 0)

def queue():
    name = b"evenhand-%d" % os.getpid()
    fd = libc.syscall(NR_MQ_OPEN, name, 0o102, 0o600, None)
    if fd < 0:
        raise PermissionError
    os.close(fd)
    libc.syscall(NR_MQ_OPEN + 1, name)

for probe in (loopback, buffer, attribute, semaphores, queue):
    try:
        probe()
        print("given")
    except OSError:
        print("refused")
"""


def test_memory_of_the_kernel_that_no_limit_counts_is_refused(any_limits: Pool) -> None:
    source = IN_THE_KERNEL.replace("NR_MQ_OPEN", "240" if os.uname().machine == "x86_64" else "180")
    assert outside(source).stdout.split() == [b"given"] * 5
    found = any_limits.execute(Program(source=source, limits=TIGHT))
    assert found.stdout.split() == [b"refused"] * 5, found


FILES_WITHOUT_CONTENT = """
import os
folder = FOLDER
for number in range(150_000):
    os.mknod(f"{folder}/{number}")
print("made", number + 1)
"""


@pytest.mark.parametrize(
    "pool", ["bubblewrap", pytest.param("docker", marks=pytest.mark.xdist_group("docker"))]
)
def test_memory_of_the_kernel_that_a_control_group_counts_is_limited(
    request: pytest.FixtureRequest, pool: str, tmp_path: Path
) -> None:
    """An empty file on a tmpfs takes the kernel about 1 KiB: 150,000 of them 150 MiB, twice the limit."""
    control = FILES_WITHOUT_CONTENT.replace("FOLDER", repr(str(tmp_path)))
    assert outside(control).stdout == b"made 150000\n"
    limits = ResourceLimits(wall_seconds=100.0, cpu_seconds=60, memory_bytes=72 * MEBIBYTE, processes=6)
    source = FILES_WITHOUT_CONTENT.replace("FOLDER", "'/tmp'")
    found = request.getfixturevalue(pool).execute(Program(source=source, limits=limits))
    assert found.stdout == b"", found
    assert found.ending == "memory_limit" or b"No space left" in found.stderr


SPREAD = ("def f():\n    return range(10**9)", "assert sorted(f()) == [3]")
MANY_LISTS = """
import os, struct
def f():
    body = b'{"document": {"nodes": [' + b'[],' * 4_000_000 + b'[]], "values": [0]}}'
    data = memoryview(struct.pack('>cI', b'J', len(body)) + body)
    while data:
        data = data[os.write(3, data):]
"""


@pytest.mark.parametrize("answer", [SPREAD, (MANY_LISTS, "assert f() == 3")], ids=["range", "lists"])
def test_an_answer_that_fills_the_memory_of_the_test_is_the_programs_fault(
    any_limits: Pool, answer: tuple[str, str]
) -> None:
    source, test = answer
    limits = ResourceLimits(wall_seconds=240, cpu_seconds=240, memory_bytes=192 * MEBIBYTE)
    found = any_limits.execute(Program(source=source, test=test, entry_point="f", limits=limits))
    assert found.grade is not None
    assert (found.grade.passed, found.grade.reason) == (False, "memory_limit")


FILL = """
import os, sys
written = 0
for folder in sys.argv[1:] or ["/tmp", "/dev/shm", "/var/tmp", "/run", "/"]:
    try:
        for name in range(4):
            with open(f"{folder}/fill-{name}", "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(b"x" * (256 << 10))
    except OSError:
        pass
print("written", written >> 20)
"""


def test_files_are_limited(any_limits: Pool, tmp_path: Path) -> None:
    control = subprocess.run(
        [sys.executable, "-I", "-c", FILL, str(tmp_path)], capture_output=True, timeout=300
    )
    assert control.stdout == b"written 16\n"
    found = any_limits.execute(Program(source=FILL, limits=TIGHT))
    # /tmp and /dev/shm, each at most the limit.
    assert number(found.stdout) <= 2 * TIGHT.disk_bytes // MEBIBYTE


def test_endless_work_ends_at_the_processor_limit(any_limits: Pool) -> None:
    source = "while True: pass"
    with pytest.raises(subprocess.TimeoutExpired):
        outside(source, timeout=1.5)
    found = any_limits.execute(Program(source=source, limits=ResourceLimits(wall_seconds=120, cpu_seconds=1)))
    assert found.ending == "cpu_limit"
    # A program that ignores the first signal gets another.
    stubborn = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    found = any_limits.execute(
        Program(source=stubborn, limits=ResourceLimits(wall_seconds=120, cpu_seconds=1))
    )
    assert found.ending in ("signaled", "cpu_limit")
    assert found.usage.cpu_seconds < 4


def test_sleeping_past_the_limit_ends_in_time(any_limits: Pool) -> None:
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        outside(source, timeout=1.5)
    found = any_limits.execute(Program(source=source, limits=ResourceLimits(wall_seconds=1.0)))
    assert found.ending == "timeout"
    assert 1 <= found.usage.wall_seconds < 300, "it was ended long before it would have"


def test_endless_output_is_cut_and_the_cut_is_visible(any_limits: Pool) -> None:
    source = (
        "import sys\nfor _ in range(3000):\n    sys.stdout.write('x' * 1000); sys.stderr.write('y' * 1000)"
    )
    assert len(outside(source).stdout) == 3_000_000
    found = any_limits.execute(Program(source=source, limits=TIGHT))
    assert found.ending == "output_limit"
    assert found.truncated
    assert len(found.stdout) + len(found.stderr) <= TIGHT.output_bytes


# The pipe is closed by exec: its end says that the child has become another program.
STAY = """
import os, signal
became, end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execv("/bin/sleep", ["sleep", "MARK"])
    os._exit(0)
os.close(end)
os.wait()
os.read(became, 1)
"""


def running(mark: str) -> list[int]:
    """Processes of this machine whose command line holds the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def test_children_that_left_the_session_are_gone(any_limits: Pool) -> None:
    mark = f"60.{secrets.randbelow(10**9):09d}"
    outside(STAY.replace("MARK", mark))
    left = running(mark)
    assert len(left) == 1
    os.kill(left[0], signal.SIGKILL)
    mark = f"60.{secrets.randbelow(10**9):09d}"
    found = any_limits.execute(Program(source=STAY.replace("MARK", mark), limits=ROOMY))
    assert (found.ending, found.exit_code) == ("exited", 0)
    until = time.monotonic() + 60
    while running(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert running(mark) == []


def test_files_of_the_host_cannot_be_read(any_limits: Pool, tmp_path: Path) -> None:
    secret = secrets.token_hex(8)
    file = tmp_path / "secret"
    file.write_text(secret)
    file.chmod(0o644)
    source = (
        f"import glob, os\nfor path in [{str(file)!r}, '/proc/1/root{file}', '/proc/1/cwd/{file.name}',\n"
        "        *glob.glob('/proc/*/root/etc/hostname')]:\n"
        "    try:\n        print(open(path).read())\n    except OSError as error:\n        print(error.errno)\n"
    )
    assert secret.encode() in outside(source).stdout
    found = any_limits.execute(Program(source=source, limits=ROOMY))
    assert found.exit_code == 0
    assert secret.encode() not in found.stdout


def test_secrets_of_the_environment_cannot_be_read(any_limits: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = secrets.token_hex(8)
    monkeypatch.setenv("EVENHAND_TEST_SECRET", secret)
    source = (
        "import glob, os\nprint(dict(os.environ))\nfor path in glob.glob('/proc/*/environ'):\n"
        "    try:\n        print(open(path, 'rb').read())\n    except OSError:\n        pass\n"
    )
    assert secret.encode() in outside(source).stdout
    # Other limits than the pool's: a sandbox started now, with the secret in our environment.
    found = any_limits.execute(Program(source=source, limits=TIGHT))
    assert found.exit_code == 0
    assert secret.encode() not in found.stdout


def test_other_processes_cannot_be_seen(any_limits: Pool) -> None:
    source = (
        f"import os\nprint('seen' if os.path.exists('/proc/{os.getpid()}/cmdline') else 'not seen')\n"
        f"try:\n    os.kill({os.getpid()}, 0)\n    print('reached')\nexcept OSError:\n    print('not reached')\n"
        "print(sum(name.isdigit() for name in os.listdir('/proc')))"
    )
    control = outside(source).stdout.split(b"\n")
    assert control[:2] == [b"seen", b"reached"]
    assert int(control[2]) > 2
    assert os.getpid() > 100, "the numbers inside are small; ours must not be one of them"
    found = any_limits.execute(Program(source=source, limits=ROOMY))
    assert found.stdout == b"not seen\nnot reached\n2\n"


def test_nothing_outside_can_be_written(any_limits: Pool, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    source = (
        f"import os\nfor path in [{str(tmp_path)!r}, '/usr', '/usr/bin', '/etc', '/', '/dev', '/proc/sys/kernel']:\n"
        "    try:\n        open(path + '/written', 'w').close()\n        print('wrote', path)\n"
        "    except OSError:\n        pass\n"
        "for path in ['/usr/bin/python3', '/proc/sys/kernel/hostname', '/proc/1/oom_score_adj']:\n"
        "    try:\n        os.chmod(path, 0o777)\n        print('changed', path)\n    except OSError:\n        pass\n"
    )
    control = source.replace(", '/usr', '/usr/bin', '/etc', '/', '/dev', '/proc/sys/kernel'", "")
    control = control[: control.index("for path in ['/usr/bin/python3'")]
    assert b"wrote" in outside(control).stdout
    (tmp_path / "written").unlink()
    found = any_limits.execute(Program(source=source, limits=ROOMY))
    assert (found.exit_code, found.stdout) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_no_network_not_even_the_loopback(any_limits: Pool, tmp_path: Path) -> None:
    abstract = f"\0evenhand-{secrets.token_hex(6)}"
    path = str(tmp_path / "socket")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as hidden,
        socket.socket(socket.AF_UNIX) as named,
    ):
        hidden.bind(abstract)
        hidden.listen(5)
        named.bind(path)
        named.listen(5)
        source = (
            "import socket\n"
            f"for family, address in [(2, ('127.0.0.1', {server.getsockname()[1]})), (1, {abstract!r}), (1, {path!r})]:\n"
            "    try:\n        with socket.socket(family) as s:\n            s.settimeout(60)\n            s.connect(address)\n"
            "            print('connected')\n    except OSError:\n        print('refused')\n"
        )
        assert outside(source).stdout.split() == [b"connected"] * 3
        found = any_limits.execute(Program(source=source, limits=ROOMY))
    assert found.stdout.split() == [b"refused"] * 3


def test_ordinary_socket_families_only(any_limits: Pool) -> None:
    source = (
        "import socket\nfor family in (16, 17, 38, 40):\n    try:\n        socket.socket(family, socket.SOCK_RAW).close()\n"
        "        print('opened', family)\n    except OSError:\n        pass\n"
    )
    if os.geteuid() == 0:
        assert b"opened 16" in outside(source).stdout
    found = any_limits.execute(Program(source=source, limits=ROOMY))
    assert (found.exit_code, found.stdout) == (0, b"")


TRACE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1]) if len(sys.argv) > 1 else 0
if not pid:
    pid = os.fork()
    if pid == 0:
        time.sleep(120)
        os._exit(0)
print("own child", libc.ptrace(16, pid, 0, 0))
if os.getppid() == 1:
    print("process 1", libc.ptrace(16, 1, 0, 0))
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    print("memory", libc.process_vm_readv(1, vector, 1, vector, 1, 0))
os.kill(pid, 9)
"""


def test_tracing_is_refused(any_limits: Pool) -> None:
    if os.geteuid() == 0:
        assert outside(TRACE).stdout.split(b"\n")[0] == b"own child 0"
    found = any_limits.execute(Program(source=TRACE, limits=ROOMY))
    assert found.stdout.split(b"\n")[:3] == [b"own child -1", b"process 1 -1", b"memory -1"], found


NAMESPACES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, flag in [("user", 0x10000000), ("mount", 0x20000), ("net", 0x40000000), ("pid", 0x20000000)]:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.unshare(flag) == 0 else 1)
    print(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.fork()
if pid == 0:
    # A process of its own, in a mount namespace of its own where it gets one.
    if libc.unshare(0x20000) and os.getuid() == 0:
        os._exit(2)
    libc.mount(b"none", b"/", None, 0x44000, None)
    os._exit(0 if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else 1)
print("mounting", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("cloning", libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if os.uname().machine == "x86_64" and os.getppid() == 1 else -1)
"""


def test_namespaces_and_mounts_are_refused(any_limits: Pool) -> None:
    if os.geteuid() == 0:
        assert outside(NAMESPACES).stdout.split(b"\n")[1] == b"mount 0"
        assert b"mounting 0" in outside(NAMESPACES).stdout
    found = any_limits.execute(Program(source=NAMESPACES, limits=ROOMY))
    assert found.stdout.split() == b"user 1 mount 1 net 1 pid 1 mounting 1 cloning -1".split(), found


def test_descriptors_of_the_host_do_not_leak(any_limits: Pool, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("leaked")
    source = (
        "import os\nfor fd in range(3, 1024):\n    try:\n        os.fstat(fd)\n    except OSError:\n        continue\n"
        "    try:\n        print(fd, os.pread(fd, 9, 0))\n    except OSError as e:\n        print(fd, 'open')\n"
    )
    with (tmp_path / "secret").open() as file:
        os.set_inheritable(file.fileno(), True)
        assert b"leaked" in outside(source, close_fds=False).stdout
        found: Execution = any_limits.execute(Program(source=source, limits=TIGHT))
    assert (found.exit_code, found.stdout) == (0, b"")


def test_links_and_fifos_in_place_of_files_change_nothing(any_limits: Pool) -> None:
    source = (
        "import os\nfor name in ('program.py', 'result', 'result.json', 'grade'):\n"
        "    if os.path.lexists(name): os.unlink(name)\n"
        "    os.mkfifo(name) if name[0] == 'r' else os.symlink('/proc/1/mem', name)\n"
        "os.rename('/tmp/work', '/tmp/other')\nos.symlink('/', '/tmp/work')\n"
        "def add(a, b):\n    return a + b\n"
    )
    for test, passed in (("assert add(1, 2) == 3", True), ("assert add(1, 2) == 4", False)):
        grade = (any_limits.execute(Program(source=source, test=test, limits=ROOMY))).grade
        assert grade is not None
        assert grade.passed is passed


def test_the_next_program_finds_no_leftovers(any_limits: Pool) -> None:
    name = f"left-{secrets.token_hex(6)}"
    leave = (
        f"import os, socket, time\nfor folder in ('/tmp', '/tmp/work', '/dev/shm', '/var/tmp', '/run'):\n"
        f"    try: open(folder + '/{name}', 'w').close()\n    except OSError: pass\n"
        "there, here = os.pipe()\n"
        f"if os.fork() == 0:\n    s = socket.socket(1)\n    s.bind('\\0{name}')\n    s.listen()\n"
        "    os.write(here, b'x')\n    time.sleep(120)\n"
        "os.read(there, 1)"
    )
    look = (
        "import os, socket\n"
        f"print([f for f in ('/tmp', '/tmp/work', '/dev/shm', '/var/tmp', '/run') if os.path.exists(f + '/{name}')])\n"
        f"print(socket.socket(1).connect_ex('\\0{name}'))\nprint(sum(n.isdigit() for n in os.listdir('/proc')))"
    )
    for _ in range(3):
        assert (any_limits.execute(Program(source=leave, limits=ROOMY))).exit_code == 0
        found = any_limits.execute(Program(source=look, limits=ROOMY))
        assert found.stdout.split() == [b"[]", b"111", b"2"], found
