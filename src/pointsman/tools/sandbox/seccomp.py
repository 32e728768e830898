"""Seccomp filter of a sandbox: the table of refused system calls, and its compilation to a program of the kernel.

Below `NEW`, the listed calls are refused and all others allowed. From `NEW` on, numbers are the same on all processors
and the kernel still adds calls: there, only the listed calls are allowed, so that future calls are refused.

A refused call fails with EPERM. An unknown call fails with ENOSYS, so that libraries fall back to an older one. A call
with numbers of another processor architecture kills the program.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from typing import Final

from msgspec import Struct


class Machine(Struct, frozen=True):
    """A processor architecture and its column in the tables below."""

    audit: int
    """AUDIT_ARCH_* of <linux/audit.h>."""
    column: int
    has_x32: bool = False
    """The x32 ABI reaches the same kernel functions by other numbers."""


MACHINES: Final = {
    "x86_64": Machine(audit=0xC000003E, column=0, has_x32=True),
    "aarch64": Machine(audit=0xC00000B7, column=1),
}
"""By the machine name of `os.uname`."""

NEW: Final = 424
NEW_ALLOWED: Final = {
    "close_range": 436,
    "openat2": 437,
    "faccessat2": 439,
    "epoll_pwait2": 441,
    "futex_waitv": 449,
    "cachestat": 451,
    "map_shadow_stack": 453,
    "futex_wake": 454,
    "futex_wait": 455,
    "futex_requeue": 456,
    "mseal": 462,
}

Numbers = dict[str, tuple[int | None, int | None]]
"""Name -> numbers on x86_64 and aarch64; None: the architecture does not have the call."""

REFUSED: Final[Numbers] = {
    # Network, including listening.
    "socket": (41, 198),
    # Other processes and their memory.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "get_robust_list": (274, 100),
    # Namespaces and mounts.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "mknod": (133, None),
    "mknodat": (259, 33),
    # Memory that the limits do not count.
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "setsockopt": (54, 208),
    # Large, rarely needed parts of the kernel with a record of vulnerabilities.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "vmsplice": (278, 75),
    "modify_ldt": (154, None),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Administration of the machine.
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "iopl": (172, None),
    "ioperm": (173, None),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "syslog": (103, 116),
    "nfsservctl": (180, 42),
    "uselib": (134, None),
    "sysfs": (139, None),
}

REFUSED_AMONG_OTHERS: Final[Numbers] = {
    # Signals, priorities and similar for other processes, which a sandbox without namespaces can see.
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    # Operations that Landlock does not restrict.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "inotify_add_watch": (254, 27),
}
"""Additionally refused if the sandbox has no namespaces, so that the program sees other processes."""

STARTING: Final[Numbers] = {"fork": (57, None), "vfork": (58, None)}
CLONE: Final = (56, 220)
SOCKETPAIR: Final = (53, 199)
PRLIMIT: Final = (302, 261)
FCNTL: Final = (72, 25)
IOCTL: Final = (16, 29)


LOAD: Final = 0x20
AND: Final = 0x54
EQUAL: Final = 0x15
AT_LEAST: Final = 0x35
ANY_BIT: Final = 0x45
ANSWER: Final = 0x06

ALLOW: Final = 0x7FFF0000
END_IT: Final = 0x80000000
REFUSE: Final = 0x00050000 | errno.EPERM
UNKNOWN: Final = 0x00050000 | errno.ENOSYS

NUMBER_AT: Final = 0
MACHINE_AT: Final = 4
X32: Final = 0x40000000

NEW_THREAD: Final = 0x00010000
NEW_NAMESPACES: Final = 0x7E020000
KIND_OF_SOCKET: Final = 0x0F
STREAM: Final = 1
SIGNALS_OF_FILES: Final = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX, which make a file send signals to other processes."""
KEYS_AND_OWNERS: Final = (0x5412, 0x541C, 0x8901, 0x8902)
"""TIOCSTI and TIOCLINUX insert input into a terminal; FIOSETOWN and SIOCSPGRP are equivalent to F_SETOWN."""


def filter_for(machine: Machine, *, may_start: bool, among_others: bool) -> bytes:
    """Return the filter. `may_start`: the program may start others. `among_others`: the sandbox has no namespaces, so
    that it could see processes outside."""
    refused: Numbers = {**REFUSED, **(REFUSED_AMONG_OTHERS if among_others else {}), **({} if may_start else STARTING)}
    program = [_load(MACHINE_AT), *_unless_equal(machine.audit, END_IT), _load(NUMBER_AT)]
    if machine.has_x32:
        program += [_jump(AT_LEAST, X32, no=1), _answer(UNKNOWN)]
    program += _new_calls()
    for numbers in refused.values():
        program += _if_equal(numbers[machine.column], [_answer(REFUSE)])
    starting = [_jump(ANY_BIT, NEW_NAMESPACES, no=1), _answer(REFUSE)]
    if not may_start:
        starting += [_jump(ANY_BIT, NEW_THREAD, yes=1), _answer(REFUSE)]
    # Only stream pairs: a datagram socket of a pair could send to any path.
    pair = [_step(AND, KIND_OF_SOCKET), *_unless_equal(STREAM, REFUSE)]
    for numbers, argument, rules in (
        (CLONE, 0, starting),
        (SOCKETPAIR, 1, pair),
        (PRLIMIT, 0, _unless_equal(0, REFUSE)),
        (FCNTL, 1, _refused(SIGNALS_OF_FILES)),
        (IOCTL, 1, _refused(KEYS_AND_OWNERS)),
    ):
        program += _if_equal(numbers[machine.column], [_load(16 + 8 * argument), *rules, _answer(ALLOW)])
    return b"".join([*program, _answer(ALLOW)])


def _new_calls() -> list[bytes]:
    """Return the rules for calls from `NEW` on; lower numbers jump over them."""
    allowed = [step for number in NEW_ALLOWED.values() for step in _if_equal(number, [_answer(ALLOW)])]
    rules = [*allowed, _answer(UNKNOWN)]
    return [_jump(AT_LEAST, NEW, no=len(rules)), *rules]


def _refused(values: Iterable[int]) -> list[bytes]:
    return [step for value in values for step in _if_equal(value, [_answer(REFUSE)])]


def _if_equal(value: int | None, rules: list[bytes]) -> list[bytes]:
    return [] if value is None else [_jump(EQUAL, value, no=len(rules)), *rules]


def _unless_equal(value: int, answer: int) -> list[bytes]:
    return [_jump(EQUAL, value, yes=1), _answer(answer)]


def _load(offset: int) -> bytes:
    return _step(LOAD, offset)


def _answer(value: int) -> bytes:
    return _step(ANSWER, value)


def _jump(kind: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", kind, yes, no, value)


def _step(kind: int, value: int) -> bytes:
    return struct.pack("=HBBI", kind, 0, 0, value)
