"""The filter of system calls, run by an interpreter of classic BPF for both machines; and what honest programs need."""

import errno
import re
import struct
from pathlib import Path

import pytest
from tests.real_parts import need

from evenhand.sandbox import seccomp
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program, ResourceLimits

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMNS = {"x86_64": 0, "aarch64": 1}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
# From the kernel's syscall_64.tbl and asm-generic/unistd.h.
DANGEROUS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "setns": (308, 268), "unshare": (272, 97), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "init_module": (175, 105), "kexec_load": (246, 104), "reboot": (169, 142), "syslog": (103, 116),
    "personality": (135, 92), "memfd_create": (319, 279), "memfd_secret": (447, 447), "seccomp": (317, 277),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "sethostname": (170, 161), "quotactl": (179, 60), "acct": (163, 89),
    "process_madvise": (440, 440), "mbind": (237, 235), "move_pages": (279, 239), "iopl": (172, None),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
}  # fmt: skip


def answer(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter says to a call."""
    program = seccomp.filter_program(machine)
    assert program is not None
    arch = ARCHITECTURES[machine] if architecture is None else architecture
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    assert len(steps) <= 4096, "the kernel takes no more"
    register = place = 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            register = struct.unpack_from("=I", data, value)[0]
            continue
        holds = {
            0x15: register == value,
            0x25: register > value,
            0x35: register >= value,
            0x45: register & value != 0,
        }[code]
        place += yes if holds else no


machines = pytest.mark.parametrize("machine", ARCHITECTURES)


@machines
def test_only_what_is_listed_is_allowed(machine: str) -> None:
    column = COLUMNS[machine]
    listed = {numbers[column] for numbers in seccomp.ALLOWED.values()}
    by_argument = {(56, 220), (302, 261), (41, 198), (53, 199), (54, 208)}
    looked_at = {numbers[column] for numbers in by_argument}
    for number in range(1000):
        if number in looked_at:
            continue
        if number in listed:
            expected = ALLOW
        elif number > seccomp.NEWEST or number == 435:
            expected = ERROR | errno.ENOSYS
        else:
            expected = ERROR | errno.EPERM
        assert answer(machine, number) == expected, number


@machines
def test_calls_into_the_kernels_deeper_parts_are_refused(machine: str) -> None:
    for name, numbers in DANGEROUS.items():
        number = numbers[COLUMNS[machine]]
        if number is not None:
            assert answer(machine, number) == ERROR | errno.EPERM, name


@machines
def test_calls_that_are_answered_by_an_argument(machine: str) -> None:
    column = COLUMNS[machine]
    clone, prlimit = (56, 220)[column], (302, 261)[column]
    assert answer(machine, clone, 0x11) == ALLOW
    assert answer(machine, clone, 0x3D0F00) == ALLOW, "the flags of a thread"
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, clone, flag | 0x11) == ERROR | errno.EPERM, hex(flag)
    assert answer(machine, prlimit, 0) == ALLOW
    assert answer(machine, prlimit, 1) == ERROR | errno.EPERM
    for number in ((41, 198)[column], (53, 199)[column]):
        found = {family: answer(machine, number, family) for family in range(48)}
        assert found.pop(1) == ALLOW, "between processes of the sandbox"
        assert set(found.values()) == {ERROR | errno.EAFNOSUPPORT}
    options = {option: answer(machine, (54, 208)[column], 3, 1, option) for option in range(64)}
    assert {option for option, said in options.items() if said != ALLOW} == {7, 8, 32, 33}


def test_another_machines_calls_end_the_process() -> None:
    assert answer("x86_64", 0, architecture=0x40000003) == KILL, "32-bit calls have other numbers"
    assert answer("x86_64", 0x40000000) == ERROR | errno.EPERM, "so have those of x32"
    assert seccomp.filter_program("riscv64") is None


def test_the_numbers_are_the_kernels() -> None:
    """Against the headers of this machine's C library, for both machines."""
    files = (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm-generic/unistd.h"))
    need(all(file.exists() for file in files), "linux-libc-dev")
    for column, file in enumerate(files):
        text = file.read_text()
        numbers = {
            name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", text)
        }
        numbers.setdefault("newfstatat", numbers.get("fstatat", -1))
        for name, columns in (seccomp.ALLOWED | DANGEROUS).items():
            found = columns[column]
            assert found is None or numbers.get(name, found) == found, (file.name, name)
            assert found is not None or name not in numbers, (file.name, name)


HONEST = """
import array, asyncio, base64, bisect, calendar, collections, concurrent.futures, contextlib, copy, csv, dataclasses
import datetime, decimal, difflib, enum, fractions, functools, glob, gzip, hashlib, heapq, hmac, html, io, itertools
import json, logging, math, mmap, multiprocessing, operator, os, pathlib, pickle, queue, random, re, secrets, select
import shutil, signal, sqlite3, statistics, string, struct, subprocess, sys, tempfile, textwrap, threading, time
import tracemalloc, typing, unittest, urllib.parse, uuid, warnings, xml.etree.ElementTree, zipfile, zlib, zoneinfo

async def sleepy():
    await asyncio.sleep(0.001)
    return await asyncio.to_thread(sum, [1, 2])

async def child():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(6)", stdout=subprocess.PIPE)
    return int((await process.communicate())[0])

assert asyncio.run(sleepy()) == 3
assert asyncio.run(child()) == 6
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
if os.path.isdir("/dev/shm"):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        assert pool.submit(math.sqrt, 9).result() == 3
    events = multiprocessing.get_context("fork").Queue()
    events.put(4)
    assert events.get() == 4
assert subprocess.run([sys.executable, "-c", "print(5)"], capture_output=True).stdout == b"5\\n"
assert subprocess.run("echo a | tr a b", shell=True, capture_output=True, text=True).stdout == "b\\n"
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "a.txt")
    file.write_text("text")
    shutil.copy2(file, pathlib.Path(folder, "b.txt"))
    shutil.copytree(folder, folder + "-copy")
    os.replace(file, file.with_name("c.txt"))
    os.symlink("c.txt", file)
    assert sorted(p.name for p in pathlib.Path(folder).iterdir()) == ["a.txt", "b.txt", "c.txt"]
    assert file.read_text() == "text" and len(glob.glob(folder + "/*")) == 3
    with sqlite3.connect(folder + "/data") as base:
        base.execute("create table t (x)")
        base.execute("insert into t values (1)")
        assert base.execute("select x from t").fetchall() == [(1,)]
    base.close()
    with zipfile.ZipFile(folder + "/z.zip", "w") as packed:
        packed.writestr("x", "y")
    with open(folder + "/map", "w+b") as plain:
        plain.write(b"abc")
        plain.flush()
        os.fsync(plain.fileno())
        with mmap.mmap(plain.fileno(), 3) as mapped:
            assert mapped[:] == b"abc"
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001)
signal.pause()
assert time.monotonic() and time.perf_counter_ns() and time.strftime("%Y") and datetime.datetime.now()
assert random.random() < 1 and len(secrets.token_bytes(8)) == 8 and uuid.uuid4() and os.cpu_count()
assert decimal.Decimal("1.1") + 1 == decimal.Decimal("2.1") and fractions.Fraction(1, 3) * 3 == 1
reader, writer = os.pipe()
os.write(writer, b"x")
assert select.select([reader], [], [], 1)[0] == [reader]
pid = os.fork()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
tracemalloc.start()
tracemalloc.stop()
assert os.uname().sysname == "Linux" and os.getpid() > 1 and os.times().user >= 0 and os.getloadavg
print("all of it works")
"""


def test_what_honest_programs_use_works(sandbox: Pool) -> None:
    found = sandbox.execute(Program(source=HONEST, limits=ResourceLimits(wall_seconds=120.0, cpu_seconds=60)))
    assert found.stdout == b"all of it works\n", found.stderr.decode()
