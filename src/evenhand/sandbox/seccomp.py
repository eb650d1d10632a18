"""A filter of system calls for programs that have no business with the kernel's deeper parts.

Written as classic BPF by hand, so that no library has to be there: a list of calls that answer "not permitted",
new namespaces and other processes' limits refused, and sockets of ordinary families only (a virtual machine's host socket, for one, is not
held by a network namespace).
"""

import errno
import platform
import struct

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6."""

# name: (x86_64, aarch64)
_REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "setns": (308, 268), "unshare": (272, 97),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "syslog": (103, 116),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18), "personality": (135, 92), "vmsplice": (278, 75), "mbind": (237, 235),
    # Memory that only a control group counts.
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "set_mempolicy": (238, 237),
}  # fmt: skip
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_PRLIMIT = (302, 261)
_X32 = 0x40000000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter for this kind of machine as `bwrap --seccomp` reads it; None for a kind it is not written for."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    refuse = _instruction(_RETURN, _ERROR | errno.EPERM)
    parts = [
        _instruction(_LOAD, _ARCH_AT),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if column == 0:
        parts += [_instruction(_JUMP_GREATER_EQUAL, _X32, 0, 1), refuse]
    # glibc falls back to `clone`, whose flags can be looked at, when `clone3` does not exist.
    parts += [
        _instruction(_JUMP_EQUAL, _CLONE3[column], 0, 1),
        _instruction(_RETURN, _ERROR | errno.ENOSYS),
    ]
    for numbers in _REFUSED.values():
        parts += [_instruction(_JUMP_EQUAL, numbers[column], 0, 1), refuse]
    parts += [
        _instruction(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
        refuse,
        _instruction(_RETURN, _ALLOW),
    ]
    # Another process's limits could be set too, the supervisor's for one.
    parts += [
        _instruction(_JUMP_EQUAL, _PRLIMIT[column], 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        refuse,
        _instruction(_RETURN, _ALLOW),
    ]
    for numbers in (_SOCKET, _SOCKETPAIR):
        parts += [
            _instruction(_JUMP_EQUAL, numbers[column], 0, 3 + len(_FAMILIES)),
            _instruction(_LOAD, _FIRST_ARGUMENT_AT),
            *(
                _instruction(_JUMP_EQUAL, family, len(_FAMILIES) - index, 0)
                for index, family in enumerate(_FAMILIES)
            ),
            _instruction(_RETURN, _ERROR | errno.EAFNOSUPPORT),
            _instruction(_RETURN, _ALLOW),
        ]
    parts.append(_instruction(_RETURN, _ALLOW))
    return b"".join(parts)
