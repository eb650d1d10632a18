"""Programs that the conformance kit runs inside a sandbox, as text. All bounded."""

ECHO = """
import sys
print(sys.stdin.read(), open("data/a.txt").read())
print("err", file=sys.stderr)
sys.exit(7)
"""

FORGED = """
import os, sys
class Equal:
    def __eq__(self, other):
        return True
def add(a, b):
    print("PASSED")
    return Equal()
"""

# Each line of the report is "held" or what was possible.
CONFINEMENT = r"""
import ctypes, json, os, socket
seen = {}

def probe(name):
    def run(function):
        try:
            result = function()
        except (OSError, PermissionError) as error:
            result = None
        seen[name] = "held" if result is None else str(result)
    return run

status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
libc = ctypes.CDLL(None, use_errno=True)

@probe("unprivileged uid")
def _():
    return "uid 0" if 0 in (os.getuid(), os.geteuid(), os.getgid()) else None

@probe("no capabilities")
def _():
    return status["CapEff"] if int(status["CapEff"], 16) or int(status["CapPrm"], 16) else None

@probe("no new privileges")
def _():
    return None if status.get("NoNewPrivs", "1").strip() == "1" else "may gain privileges"

@probe("no network")
def _():
    with socket.socket() as s:
        s.settimeout(1)
        s.connect(("198.51.100.7", 80))
    return "connected"

@probe("own loopback only")
def _():
    names = [name for _, name in socket.if_nameindex()]
    return None if set(names) <= {"lo"} else names

@probe("no sockets of the machine")
def _():
    with socket.socket(40, socket.SOCK_STREAM):
        return "opened a socket to the virtual machine's host"

@probe("read-only root")
def _():
    for folder in ("/", "/usr", "/etc", "/bin", "/dev", "/proc", "/var"):
        try:
            with open(os.path.join(folder, "evenhand-probe"), "w"):
                return "wrote to " + folder
        except OSError:
            continue

@probe("no host files")
def _():
    for path in ("/etc/shadow", "/root/.ssh", "/root/.bashrc", "/proc/kcore", "/dev/mem", "/dev/kmsg"):
        try:
            if os.path.isdir(path):
                os.listdir(path)
                return "listed " + path
            with open(path, "rb") as file:
                file.read(1)
            return "read " + path
        except OSError:
            continue

@probe("no other processes")
def _():
    others = [int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) not in (1, os.getpid())]
    return f"sees processes {others}" if others else None

@probe("supervisor cannot be read")
def _():
    if os.getpid() == 1:
        return "the program is process 1"
    for name in ("mem", *(f"fd/{n}" for n in range(16))):
        try:
            with open(f"/proc/1/{name}", "rb") as file:
                file.read(1)
            return "opened /proc/1/" + name
        except OSError:
            continue

@probe("supervisor cannot be traced")
def _():
    return None if libc.ptrace(16, 1, 0, 0) else "attached to process 1"

@probe("no mounts")
def _():
    return None if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) else "mounted"

@probe("no new namespaces")
def _():
    return None if libc.unshare(0x10000000) else "made a user namespace"

@probe("no stray descriptors")
def _():
    found = []
    for number in range(3, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return f"descriptors {found}" if found else None

print(json.dumps(seen))
"""

MEMORY = """
kept = []
for _ in range(64):
    kept.append(bytearray(b"x" * (8 << 20)))
print("kept 512 MiB")
"""

PROCESSES = """
import os, signal, time
children = []
for _ in range(60):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(120)
        os._exit(0)
    children.append(pid)
print(len(children), flush=True)
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""

THREADS = """
import threading
stop = threading.Event()
threads = []
for _ in range(60):
    thread = threading.Thread(target=stop.wait, args=(120,), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        break
    threads.append(thread)
print(len(threads), flush=True)
stop.set()
"""

DISK = """
import os
written = 0
try:
    for number in range(64):
        with open(f"/tmp/fill-{number}", "wb", buffering=0) as file:
            for _ in range(4):
                written += file.write(b"x" * (256 << 10))
except OSError:
    pass
print(max(1, written >> 20))
"""

LEAVE = """
import os
open("/tmp/evenhand-left", "w").write("x")
os.mkfifo("/tmp/evenhand-fifo")
"""

LOOK_FOR_LEFTOVERS = """
import os
print([name for name in os.listdir("/tmp") if name.startswith("evenhand")])
"""

STUBBORN_CHILD = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
    os._exit(0)
print("parent ends")
"""
