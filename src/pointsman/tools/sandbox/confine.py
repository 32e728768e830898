"""Enter the Landlock sandbox and execute the program: `python -I -S confine.py PLAN PROGRAM [ARGUMENT…]`.

A separate program that imports only the standard library. The order matters: privileges are dropped before rules are
set, and the system call filter comes last. If any step fails, it exits with 125 before the program starts.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Final, cast

CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
VERSION: Final = 1

NOT_CONFINED: Final = 125

PR_SET_PDEATHSIG: Final = 1
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
CAPABILITY_VERSION_3: Final = 0x20080522
CAPABILITIES_MAX: Final = 64
SECCOMP_MODE_FILTER: Final = 2

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
RIGHTS_OF_FILES: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of file rights by Landlock version; later versions have as many as the last."""
RIGHTS_OF_NET: Final = 0b11
SCOPES: Final = 0b11
OF_A_FILE: Final = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
"""The rights that a rule for something other than a directory may grant."""

assert sys.platform == "linux"  # `find_sandbox` refuses other systems.


class Unconfined(Exception):
    """Raised when a step of the confinement fails. The program has not been started."""


class Kernel:
    """System calls that the standard library does not offer."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def prctl(self, option: int, *arguments: object) -> None:
        """Call prctl(2). Raises `Unconfined`."""
        padded = [*arguments, *[ctypes.c_ulong(0)] * (4 - len(arguments))]
        self._sure(f"prctl {option}", self._libc.prctl(option, *padded))

    def syscall(self, number: int, *arguments: object) -> int:
        """Call a system call by number and return its result. Raises `Unconfined`."""
        return self._sure(f"call {number}", self._libc.syscall(ctypes.c_long(number), *arguments))

    def give_up_capabilities(self) -> None:
        """Drop all capabilities with capset(2). Raises `Unconfined`."""
        header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
        self._sure("capset", self._libc.capset(header, bytes(24)))

    def _sure(self, what: str, result: int) -> int:
        if result < 0:
            raise Unconfined(f"{what}: {os.strerror(ctypes.get_errno())}")
        return result


def bound(plan: dict[str, object]) -> None:
    """Close all files except the three standard streams, and set the resource limits."""
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, plan["memory"]),
        (resource.RLIMIT_CPU, plan["cpu"]),
        (resource.RLIMIT_NOFILE, plan["files"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(limit, (cast("int", value), cast("int", value)))


def give_up_rights(kernel: Kernel) -> None:
    """Drop all capabilities permanently. What root may do without them, the file rules and the filter restrict."""
    if os.geteuid() == 0:
        for capability in range(CAPABILITIES_MAX):
            try:
                kernel.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability))
            except Unconfined:
                break
    kernel.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    kernel.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL))
    kernel.give_up_capabilities()


def end_with_the_parent(kernel: Kernel, parent: int) -> None:
    """Have the kernel kill this process when its parent ends. Raises `Unconfined` if the parent has already ended."""
    kernel.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent:
        raise Unconfined("the process that started it has ended")


def restrict_files(kernel: Kernel, plan: dict[str, object]) -> None:
    """Allow only the files of the plan. Forbid TCP ports from Landlock 4 on, and signals to and abstract sockets of
    processes outside from Landlock 6 on."""
    abi = kernel.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(VERSION))
    rights = (1 << RIGHTS_OF_FILES[min(abi, max(RIGHTS_OF_FILES))]) - 1
    handled = struct.pack("=QQQ", rights, RIGHTS_OF_NET if abi >= 4 else 0, SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = kernel.syscall(CREATE_RULESET, handled, ctypes.c_size_t(size), ctypes.c_uint(0))
    for key, access in (
        ("run", EXECUTE | READ_FILE | READ_DIR),
        ("read", READ_FILE | READ_DIR),
        ("devices", READ_FILE | WRITE_FILE),
    ):
        for path in cast("list[str]", plan[key]):
            allow(kernel, ruleset, path, access & rights)
    kernel.syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def allow(kernel: Kernel, ruleset: int, path: str, access: int) -> None:
    """Add a rule for a path and everything below it."""
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        access &= OF_A_FILE
    kernel.syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), struct.pack("=Qi", access, at), ctypes.c_uint(0))
    os.close(at)


def filter_calls(kernel: Kernel, encoded: str) -> None:
    """Install the seccomp filter. No later step may need a system call that the filter refuses."""
    program = ctypes.create_string_buffer(base64.b64decode(encoded))
    instructions = (len(program) - 1) // 8

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    described = Program(instructions, ctypes.cast(program, ctypes.c_void_p))
    kernel.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(described))


def main(arguments: list[str]) -> None:
    """Confine this process and replace it with the program; never returns. Exits with 125 on failure."""
    plan = cast("dict[str, object]", json.loads(arguments[0]))
    program = arguments[1:]
    try:
        kernel = Kernel()
        os.chdir("/")
        bound(plan)
        give_up_rights(kernel)
        end_with_the_parent(kernel, cast("int", plan["parent"]))
        restrict_files(kernel, plan)
        filter_calls(kernel, cast("str", plan["filter"]))
        os.execve(program[0], program, cast("dict[str, str]", plan["environment"]))
    except (Unconfined, OSError, ValueError, MemoryError) as why:
        sys.stderr.write(f"not confined: {why}\n")
    sys.stderr.flush()
    os._exit(NOT_CONFINED)


if __name__ == "__main__":
    main(sys.argv[1:])
