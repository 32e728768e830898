"""System calls that programs in a sandbox must not use, with their numbers on each processor.

Below `NEW`, the calls listed here are refused and all others allowed. From `NEW` on, numbers are the same on all
processors and the kernel still adds calls: there, only the listed calls are allowed, so that future calls are refused.
"""

from __future__ import annotations

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
