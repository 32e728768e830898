"""The attempts of a program to leave its sandbox: `python -I -S probes.py WORLD [alone]`.

It prints one JSON object, probe -> its result: the name of an error, or what it reached. WORLD describes objects
outside: a file, a directory, a socket, a process. `alone`: the sandbox has no programs and no list of processes.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import sys
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = 0 if platform.machine() == "x86_64" else 1
FLAGS_NEW_USER = 0x10000000

CALLS = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "personality": (135, 92),
    "fanotify_init": (300, 262),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "move_pages": (279, 239),
    "vmsplice": (278, 75),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "pidfd_open": (434, 434),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "memfd_secret": (447, 447),
    "a call nobody knows": (500, 500),
}
"""System calls by number, with arguments that are harmless if the call is allowed."""


def tried(what: Callable[[], object]) -> str:
    try:
        got = what()
    except OSError as why:
        return errno.errorcode.get(why.errno or 0, str(why))
    except (ImportError, MemoryError) as why:
        return type(why).__name__
    return f"got {got!r}"[:200]


def called(number: int, *arguments: int) -> str:
    ctypes.set_errno(0)
    given = [ctypes.c_long(argument) for argument in (*arguments, 0, 0, 0, 0, 0, 0)][:6]
    result = LIBC.syscall(ctypes.c_long(number), *given)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else f"got {result}"


def written(path: str) -> str:
    with open(path, "w") as file:
        file.write("x")
    return path


def opened(path: str) -> str:
    """Open for writing, which changes nothing."""
    os.close(os.open(path, os.O_WRONLY))
    return path


def files(world: dict[str, str]) -> dict[str, str]:
    file, directory = world["file"], world["directory"]
    return {
        "read a file": tried(lambda: open(file).read()),
        "read a file through the root of a process": tried(lambda: open(f"/proc/self/root{file}").read()),
        "read a file by the way back": tried(lambda: open(f"/usr/../{file}").read()),
        "read passwords": tried(lambda: open("/etc/shadow").read()),
        "read accounts": tried(lambda: open("/etc/passwd").read()),
        "list a directory": tried(lambda: os.listdir(directory)),
        "write a file": tried(lambda: written(file)),
        "make a file": tried(lambda: written(f"{directory}/made")),
        "make a directory": tried(lambda: os.mkdir(f"{directory}/made")),
        "make a device": tried(lambda: os.mknod(f"{directory}/null", 0o020666, os.makedev(1, 3))),
        "make a pipe": tried(lambda: os.mkfifo(f"{directory}/pipe")),
        "cut a file off": tried(lambda: os.truncate(file, 0)),
        "remove a file": tried(lambda: os.unlink(file)),
        "rename a file": tried(lambda: os.rename(file, f"{file}.old")),
        "link to a file": tried(lambda: os.link(file, f"{directory}/link")),
        "link by name": tried(lambda: os.symlink("/etc/passwd", f"{directory}/link")),
        "open a file to all": tried(lambda: os.chmod(file, 0o777)),
        "give a file away": tried(lambda: os.chown(file, 1, 1)),
        "change the time of a file": tried(lambda: os.utime(file, (1, 1))),
        "mark a file": tried(lambda: os.setxattr(file, "user.mark", b"x")),
        "write to the root": tried(lambda: written("/made")),
        "write to shared memory": tried(lambda: written("/dev/shm/made")),
        "write to the temporary directory": tried(lambda: written("/tmp/made")),
        "write where it begins": tried(lambda: written("made")),
        "write to the library": tried(lambda: written(f"{sys.base_prefix}/lib/made")),
        "open a disk": tried(lambda: open("/dev/sda", "rb")),
        "open memory": tried(lambda: open("/dev/mem", "rb")),
        "open a terminal": tried(lambda: open("/dev/tty", "rb")),
    }


def others(world: dict[str, str]) -> dict[str, str]:
    pid = int(world["process"])
    affinity = lambda: os.sched_setaffinity(pid, {0})  # noqa: E731 - a probe like the others
    return {
        "end a process": tried(lambda: os.kill(pid, 9)),
        "end a group": tried(lambda: os.killpg(pid, 9)),
        "end the parent": tried(lambda: os.kill(int(world["parent"]), 9)),
        "slow a process down": tried(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        "move a process": tried(affinity),
        "limit a process": called((302, 261)[MACHINE], pid, 0, 0, 0),
        "hold a process": tried(lambda: os.pidfd_open(pid)),
        "read the environment of a process": tried(lambda: open(f"/proc/{pid}/environ").read()),
        "read the memory of a process": tried(lambda: open(f"/proc/{pid}/mem", "rb").read(1)),
        "read the command of a process": tried(lambda: open(f"/proc/{pid}/cmdline").read()),
        "change the kernel": tried(lambda: opened("/proc/sys/kernel/core_pattern")),
        "press the keys of the kernel": tried(lambda: opened("/proc/sysrq-trigger")),
        "be spared when memory is short": tried(lambda: opened("/proc/self/oom_score_adj")),
        "rename users": tried(lambda: opened("/proc/self/uid_map")),
    }


def alone() -> dict[str, str]:
    return {
        "read the environment of the first process": tried(lambda: open("/proc/1/environ").read()),
        "list processes": tried(lambda: os.listdir("/proc")),
        "become a shell": tried(lambda: os.execv("/bin/sh", ["sh", "-c", "exit 42"])),
        "become another program": tried(lambda: os.execv("/bin/true", ["true"])),
    }


def sockets(world: dict[str, str]) -> dict[str, str]:
    try:
        import socket
    except ImportError as why:
        return {"have sockets": str(why)}

    def datagram_to_a_path() -> object:
        one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return one.sendto(b"x", world["socket"])

    def to_a_path() -> object:
        return socket.socket(socket.AF_UNIX).connect(world["socket"])

    kinds = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_ALG", "AF_VSOCK", "AF_BLUETOOTH")
    found = {
        f"open {kind}": tried(lambda kind=kind: socket.socket(getattr(socket, kind), socket.SOCK_RAW))
        for kind in kinds
        if hasattr(socket, kind)
    }
    return {
        **found,
        "open a stream": tried(lambda: socket.socket()),
        "reach a path": tried(to_a_path),
        "reach a path by datagram": tried(datagram_to_a_path),
        "look a name up": tried(lambda: socket.getaddrinfo("localhost", 80, socket.AF_INET)),
    }


def programs(world: dict[str, str]) -> dict[str, str]:
    return {
        "fork": tried(os.fork),
        "fork by number": called((57, 220)[MACHINE], 17 if MACHINE else 0),
        "clone": called((56, 220)[MACHINE], 17),
        "clone with a view of its own": called((56, 220)[MACHINE], FLAGS_NEW_USER | 17),
        "start a program": tried(lambda: os.posix_spawn("/bin/echo", ["echo"], {})),
        "become a file of others": tried(lambda: os.execv(world["file"], ["x"])),
        "become root": tried(lambda: os.setuid(0)) if os.getuid() else "EPERM",
        "have rights": rights(),
        "have files open": str([number for number in range(3, 256) if is_open(number)]),
        "environment": ",".join(sorted(os.environ)),
        "where": os.getcwd(),
    }


def rights() -> str:
    """Return the capabilities that it has or could obtain."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if LIBC.capget(header, sets):
        return errno.errorcode[ctypes.get_errno()]
    return "none" if not any(sets) else f"got {[*sets]}"


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def main() -> None:
    world: dict[str, str] = json.loads(sys.argv[1])
    calls = {name: called(numbers[MACHINE]) for name, numbers in CALLS.items()}
    if MACHINE == 0:
        calls["a call by the numbers of x32"] = called(0x40000000 + 39)
    found = {"files": files(world), "others": others(world), "sockets": sockets(world), "programs": programs(world)}
    sys.stdout.write(json.dumps({**found, "calls": calls, "alone": alone() if sys.argv[2:] == ["alone"] else {}}))


if __name__ == "__main__":
    main()
