"""A filter of system calls: what ordinary programs need is allowed, everything else is refused.

Written as classic BPF by hand, so that no library has to be there. A call that is not on the list answers "not
permitted"; one that is newer than the list answers "no such call", so that libraries fall back to an older one.
Five calls are looked at more closely: no new namespaces, no limits of other processes, sockets between processes of
the sandbox only (there is no network, a virtual machine's host socket is not held by a network namespace, and
buffers of loopback connections are counted by nobody), and no larger buffers for them.
"""

import errno
import platform
import struct

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = (
    0x20,
    0x15,
    0x25,
    0x35,
    0x45,
    0x06,
)
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT, _THIRD_ARGUMENT_AT = 0, 4, 16, 32
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""
_FAMILIES = (1,)
"""AF_UNIX."""
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE."""
NEWEST = 450
"""The highest number that this list has an opinion on (Linux 5.17)."""

# name: (x86_64, aarch64); None where a machine has no such call.
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # Files and folders.
    "read": (0, 63), "write": (1, 64), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65),
    "writev": (20, 66), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286),
    "pwritev2": (328, 287), "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None),
    "close": (3, 57), "close_range": (436, 436), "lseek": (8, 62), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
    "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "getdents": (78, None), "getdents64": (217, 61),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None),
    "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "mknod": (133, None), "mknodat": (259, 33), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "umask": (95, 166),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "fadvise64": (221, 223),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "statfs": (137, 43), "fstatfs": (138, 44), "fsync": (74, 82), "fdatasync": (75, 83), "flock": (73, 32),
    "fcntl": (72, 25), "ioctl": (16, 29), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "sendfile": (40, 71), "splice": (275, 76),
    "copy_file_range": (326, 285), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    # Waiting.
    "select": (23, None), "pselect6": (270, 72), "poll": (7, None), "ppoll": (271, 73),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None),
    "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19),
    "signalfd": (282, None), "signalfd4": (289, 74), "timerfd_create": (283, 85), "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87), "restart_syscall": (219, 128), "futex": (202, 98), "futex_waitv": (449, 449),
    "set_robust_list": (273, 99), "membarrier": (324, 283), "rseq": (334, 293),
    # Memory.
    "brk": (12, 214), "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "msync": (26, 227), "mincore": (27, 232), "arch_prctl": (158, None),
    "set_tid_address": (218, 96),
    # Processes.
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "exit": (60, 93),
    "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178),
    "getpgid": (121, 155), "getpgrp": (111, None), "setpgid": (109, 154), "getsid": (124, 156),
    "setsid": (112, 157), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "prctl": (157, 167), "getrlimit": (97, 163),
    "setrlimit": (160, 164), "getrusage": (98, 165), "times": (100, 153), "getpriority": (140, 141),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126), "sched_rr_get_interval": (148, 127), "sched_getattr": (315, 275),
    "getcpu": (309, 168), "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278),
    # Signals.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None), "getitimer": (36, 102),
    "setitimer": (38, 103),
    # Clocks.
    "time": (201, None), "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    # Sockets.
    "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "connect": (42, 203),
    "getsockname": (51, 204), "getpeername": (52, 205), "getsockopt": (55, 209), "shutdown": (48, 210),
    "sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212),
    "sendmmsg": (307, 269), "recvmmsg": (299, 243),
}  # fmt: skip
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_SETSOCKOPT = (54, 208)
_PRLIMIT = (302, 261)
_X32 = 0x40000000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


_PERMIT = _instruction(_RETURN, _ALLOW)
_REFUSE = _instruction(_RETURN, _ERROR | errno.EPERM)
_UNKNOWN = _instruction(_RETURN, _ERROR | errno.ENOSYS)


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter for this kind of machine as `bwrap --seccomp` reads it; None for a kind it is not written for."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    parts = [
        _instruction(_LOAD, _ARCH_AT),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if column == 0:
        parts += [_instruction(_JUMP_GREATER_EQUAL, _X32, 0, 1), _REFUSE]
    parts += [_instruction(_JUMP_GREATER, NEWEST, 0, 1), _UNKNOWN]
    # glibc falls back to `clone`, whose flags can be looked at, when `clone3` does not exist.
    parts += [_instruction(_JUMP_EQUAL, _CLONE3[column], 0, 1), _UNKNOWN]
    for numbers in ALLOWED.values():
        number = numbers[column]
        if number is not None:
            parts += [_instruction(_JUMP_EQUAL, number, 0, 1), _PERMIT]
    parts += [
        _instruction(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
        _REFUSE,
        _PERMIT,
    ]
    # Another process's limits could be set too, the supervisor's for one.
    parts += [
        _instruction(_JUMP_EQUAL, _PRLIMIT[column], 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        _REFUSE,
        _PERMIT,
    ]
    other_family = _instruction(_RETURN, _ERROR | errno.EAFNOSUPPORT)
    for numbers in (_SOCKET, _SOCKETPAIR):
        parts += _by_argument(
            numbers[column], _FIRST_ARGUMENT_AT, _FAMILIES, found=_PERMIT, other=other_family
        )
    parts += _by_argument(
        _SETSOCKOPT[column], _THIRD_ARGUMENT_AT, _BUFFER_SIZES, found=_REFUSE, other=_PERMIT
    )
    parts.append(_REFUSE)
    return b"".join(parts)


def _by_argument(number: int, at: int, values: tuple[int, ...], *, found: bytes, other: bytes) -> list[bytes]:
    """A call that is answered by one of its arguments."""
    return [
        _instruction(_JUMP_EQUAL, number, 0, 3 + len(values)),
        _instruction(_LOAD, at),
        *(_instruction(_JUMP_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)),
        other,
        found,
    ]
