"""Seccomp filter of a sandbox in the format of the kernel: a program of eight-byte instructions.

A refused call fails with EPERM. An unknown call fails with ENOSYS, so that libraries fall back to an older one. A call
with numbers of another processor architecture kills the program.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from typing import Final

from pointsman.tools.sandbox.syscalls import (
    CLONE,
    FCNTL,
    IOCTL,
    NEW,
    NEW_ALLOWED,
    PRLIMIT,
    REFUSED,
    REFUSED_AMONG_OTHERS,
    SOCKETPAIR,
    STARTING,
    Machine,
    Numbers,
)

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
