"""What a sandbox enforces alone, without an interpreter's restrictions, for each sandbox of this machine."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import socket
import struct
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pointsman.tools.sandbox import landlock, seccomp
from pointsman.tools.sandbox.limits import FILES_MAX, Job, OutputTooLarge, ProcessResult, SandboxLimits
from pointsman.tools.sandbox.process import (
    SandboxMissing,
    SandboxTimeout,
    bounded,
    find_sandbox,
    sandbox_for,
)
from pointsman.tools.sandbox.seccomp import ALLOW, NEW_NAMESPACES, REFUSE, UNKNOWN
from pointsman.values import Bytes, Seconds
from tests.patience import PATIENCE_S
from tests.sandboxes import BOXES, BoxName, box_or_skip, take_boxes_away
from tests.tools.sandbox import probes

pytestmark = pytest.mark.integration

CLONE3: Final = 435
PYTHON: Final = str(Path(sys.executable).resolve())
HELD: Final = {"EPERM", "EACCES", "ENOENT", "EROFS", "ESRCH", "ENOSYS", "EINVAL", "ENXIO"}
NOTHING: Final = {
    "have rights": "none",
    "have files open": "[]",
    "where": "/",
    "look a name up": "[Errno -2] Name or service not known",
}
"""Results of probes that end in something other than a kernel error."""

each_box = pytest.mark.parametrize("box", BOXES)


class World:
    """Objects outside: a file, a directory, a process, a socket that accepts connections."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "file"
        self.file.write_text("theirs")
        self.directory = directory / "directory"
        self.directory.mkdir()
        self.process = subprocess.Popen(["/bin/sleep", "600"])
        self._path = directory / "socket"
        self._streams = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._streams.bind(str(self._path))
        self._streams.listen()
        self._streams.setblocking(False)

    def described(self) -> str:
        return json.dumps(
            {
                "file": str(self.file),
                "directory": str(self.directory),
                "process": str(self.process.pid),
                "parent": str(os.getpid()),
                "socket": str(self._path),
            }
        )

    def is_untouched(self) -> bool:
        with pytest.raises(BlockingIOError):
            self._streams.accept()
        there = [*self.directory.iterdir()]
        return self.file.read_text() == "theirs" and there == [] and self.process.poll() is None

    def close(self) -> None:
        self._streams.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def mark(seconds: int) -> str:
    """Return an argument of `sleep` that no other process of this machine has: tests run beside one another."""
    return f"{seconds}.{os.getpid()}"


async def ran(box: BoxName, program: str, *arguments: str, given: bytes = b"", **bounds: float) -> ProcessResult:
    """Run a shell script in a sandbox."""
    job = Job(program="/bin/sh", arguments=("-c", program, "sh", *arguments), bounds=_bounds(**bounds))
    return await bounded(box_or_skip(box), job, given)


async def python(box: BoxName, program: str, *arguments: str, alone: bool = True, **bounds: float) -> ProcessResult:
    job = Job(
        program=PYTHON,
        arguments=("-I", "-S", "-c", program, *arguments),
        bounds=_bounds(**bounds),
        readable=(sys.base_prefix,),
        only_libraries=alone,
    )
    return await bounded(box_or_skip(box), job)


def _bounds(
    *, seconds: float = 20, memory: float = 200e6, output: float = 1e6, files: float = 0, processes: float = 1
) -> SandboxLimits:
    return SandboxLimits(
        seconds=Seconds(seconds),
        memory_bytes=Bytes(int(memory)),
        output_bytes=Bytes(int(output)),
        files_bytes=Bytes(int(files)),
        processes=int(processes),
    )


@each_box
@pytest.mark.requirement("S1-104", "S1-144")
@pytest.mark.parametrize("alone", [True, False], ids=["with libraries", "with programs"])
async def test_a_program_reaches_nothing_outside_of_its_sandbox(box: BoxName, alone: bool, world: World) -> None:
    script = str(Path(probes.__file__))
    job = Job(
        program=PYTHON,
        arguments=("-I", "-S", script, world.described(), *(["alone"] if alone else [])),
        bounds=_bounds(),
        readable=(sys.base_prefix, script),
        only_libraries=alone,
    )
    ended = await bounded(box_or_skip(box), job)
    assert (ended.code, ended.errors) == (0, b"")
    families = json.loads(ended.output)
    came: dict[str, str] = {probe: what for family in families.values() for probe, what in family.items()}
    assert len(came) >= 100
    environment = came.pop("environment").split(",")
    assert {*environment} <= {"HOME", "LANG", "PATH", "PWD", "TMPDIR"}
    assert {probe: what for probe, what in came.items() if what not in HELD} == NOTHING
    assert world.is_untouched()


@each_box
@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("x = bytearray(10 ** 10)", b"MemoryError"),
        ("x = []\nwhile True: x.append(bytearray(10 ** 6))", b"MemoryError"),
        ("import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 10 ** 7))", b"Cannot allocate"),
        ("import _thread, time\nwhile True: _thread.start_new_thread(time.sleep, (99,))", b"start new thread"),
        ("import sys\nx = []\nwhile True: x.append(open(sys.executable))", b"Too many open files"),
        ("import os\nwhile True: os.pipe()", b"Too many open files"),
        ("import resource as r\nr.setrlimit(r.RLIMIT_AS, (-1, -1))", b"not allowed to raise"),
        ("import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (9999, 9999))", b"not allowed to raise"),
        ("import ctypes\nctypes.string_at(0)", b""),
        ("import os\nos.abort()", b""),
    ],
)
async def test_a_program_over_its_memory_limit_ends(box: BoxName, program: str, says: bytes) -> None:
    ended = await python(box, program)
    assert ended.code != 0
    assert says in ended.errors


@each_box
@pytest.mark.parametrize(
    "program",
    [
        "while :; do :; done",
        "trap '' TERM INT HUP; while :; do :; done",
        "exec 1>&- 2>&-; while :; do :; done",
        "read line",
        "exec sleep 600",
        "kill -STOP $$; exec sleep 600",
    ],
)
async def test_a_program_over_its_time_limit_is_killed(box: BoxName, program: str) -> None:
    waits = b"" if program != "read line" else b"x" * 10
    with pytest.raises(SandboxTimeout, match=r"within 0.3 s"):
        await ran(box, f"{program}; exec sleep 600", seconds=0.3, given=waits)


@each_box
@pytest.mark.parametrize("program", ["exec yes", "exec yes >&2", "while :; do echo x; echo y >&2; done"])
async def test_a_program_over_its_output_limit_is_killed(box: BoxName, program: str) -> None:
    with pytest.raises(OutputTooLarge, match="more than 50000 bytes"):
        await ran(box, program, output=50_000)


@each_box
async def test_unread_input_of_a_program_is_dropped(box: BoxName) -> None:
    assert (await ran(box, "exit 3", given=b"x" * 5_000_000)).code == 3
    assert (await ran(box, "exec wc -c", given=b"x" * 5_000_000)).output.strip() == b"5000000"


@each_box
async def test_a_program_sees_four_environment_variables_only(box: BoxName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_CANARY", "canary")
    said = (await ran(box, "exec env")).output.decode()
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert names - {"PWD", "OLDPWD", "_"} == {"HOME", "LANG", "PATH", "TMPDIR"}
    assert "canary" not in said


@each_box
async def test_open_files_are_not_inherited(box: BoxName, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("theirs")
    file = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(file, True)
    try:
        ended = await python(box, f"import os\nprint(os.read({file}, 10))")
    finally:
        os.close(file)
    assert b"Bad file descriptor" in ended.errors


async def test_a_sandbox_with_namespaces_sees_no_other_process() -> None:
    listing = "import os\nprint([open(f'/proc/{p}/environ').read() for p in os.listdir('/proc') if p.isdigit()][0])"
    assert (await python("bubblewrap", listing, alone=False)).output.strip() == b""
    count = "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]), os.getppid(), os.getuid())"
    assert (await python("bubblewrap", count, alone=False)).output.split() == [b"2", b"1", b"65534"]


async def test_disk_space_is_bounded_and_freed_afterwards() -> None:
    fill = "head -c 500000 /dev/zero >a; head -c 900000 /dev/zero >b; wc -c <a; wc -c <b; pwd"
    ended = await ran("bubblewrap", fill, files=1_000_000, processes=4)
    first, second, where = ended.output.split()
    assert (first, where) == (b"500000", b"/tmp")
    assert int(second) < 500_000
    assert b"No space left" in ended.errors
    assert (await ran("bubblewrap", "ls; pwd", files=1_000_000, processes=4)).output == b"/tmp\n"


FLOODS = {
    "empty files": "open(f'f{n}', 'w').close()",
    "directories": "os.mkdir(f'd{n}')",
    "directories in directories": "os.mkdir('d'); os.chdir('d')",
    "symbolic links": "os.symlink('x' * 4000, f's{n}')",
    "hard links": "open('one', 'a').close(); os.link('one', f'h{n}')",
    "pipes with names": "os.mkfifo(f'p{n}')",
    "files open and deleted": "kept.append(os.open(f'o{n}', os.O_CREAT)); os.unlink(f'o{n}')",
    "files without a name": "kept.append(os.open('.', os.O_TMPFILE | os.O_RDWR))",
    "attributes of a file": "open('one', 'a').close(); os.setxattr('one', f'user.{n}', b'x' * 4000)",
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_every_kind_of_file_counts(flood: str) -> None:
    """Each takes kernel memory, also an empty one."""
    program = (
        "import os\nkept = []\nn = 0\n"
        f"while n < 20000:\n try:\n  {FLOODS[flood]}\n except OSError:\n  break\n n += 1\nprint(n)"
    )
    ended = await python("bubblewrap", program, files=1_000_000)
    assert (ended.code, ended.errors) == (0, b"")
    assert int(ended.output) <= FILES_MAX


async def test_the_number_of_files_is_a_setting() -> None:
    job = Job(
        program="/bin/sh",
        arguments=("-c", "i=0; while command : >f$i; do i=$((i+1)); done 2>/dev/null; echo $i"),
        bounds=SandboxLimits(files_bytes=Bytes(1_000_000), files_max=50),
    )
    assert (await bounded(box_or_skip("bubblewrap"), job)).output.strip() == b"50"


@each_box
@pytest.mark.parametrize(
    "call",
    [
        "libc.memfd_create(b'x', 0)",
        "libc.shmget(0, 10 ** 6, 0o1600)",
        "libc.msgget(0, 0o1600)",
        "libc.semget(0, 100, 0o1600)",
        "libc.syscall(ctypes.c_long(ADD_KEY), b'user', b'x', b'y' * 1000, 1000, -2)",
        "libc.socket(1, 1, 0)",
        "libc.socket(16, 3, 0)",
        "libc.inotify_init()",
        "libc.inotify_init1(0)",
        "libc.setsockopt(pair[0].fileno(), 1, 7, ctypes.byref(ctypes.c_int(1 << 22)), 4)",
        "libc.setsockopt(pair[1].fileno(), 1, 8, ctypes.byref(ctypes.c_int(1 << 22)), 4)",
    ],
)
async def test_uncounted_kernel_memory_cannot_be_allocated(box: BoxName, call: str) -> None:
    add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    program = (
        "import ctypes, socket\npair = socket.socketpair()\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"ADD_KEY = {add_key}\nprint({call})"
    )
    ended = await python(box, program)
    assert (ended.code, ended.output.strip()) == (0, b"-1")


@each_box
async def test_socket_pairs_hold_little_memory(box: BoxName) -> None:
    """Their buffers are kernel memory, which no limit of the process counts."""
    program = """
import socket
pairs, bytes_held = [], 0
try:
    while True:
        for one in pairs.append(socket.socketpair()) or pairs[-1]:
            one.setblocking(False)
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
            except OSError:
                pass
            try:
                while True:
                    bytes_held += one.send(bytes(60_000))
            except BlockingIOError:
                pass
except OSError:
    print(bytes_held)
"""
    ended = await python(box, program)
    assert 0 < int(ended.output) < 100_000_000


async def test_processes_are_limited_and_end_with_the_first() -> None:
    # A shell that cannot start a process ends: this one starts one only, before the bomb has used up all processes, and
    # waits with its own commands. A pipeline would be two. It waits for a whole line: dash writes one in three pieces.
    bomb = "f() { f | f & }; : >errors; (f) 2>errors & until read why <errors; do :; done; echo survived: $why"
    ended = await ran("bubblewrap", bomb, processes=8, files=1_000_000)
    assert ended.output.startswith(b"survived: ")
    assert b"ork" in ended.output
    left = f"sleep {mark(617)} & (setsid sleep {mark(617)} &) ; exit 0"
    assert (await ran("bubblewrap", left, processes=8)).code == 0
    assert not _running(mark(617))


@each_box
async def test_a_sandbox_ends_with_its_parent(box: BoxName, tmp_path: Path) -> None:
    box_or_skip(box)
    started = tmp_path / "starts.py"
    started.write_text(
        "import asyncio, sys\n"
        "from pointsman.tools.sandbox.process import find_sandbox\n"
        "from pointsman.tools.sandbox.limits import Job, SandboxLimits\n"
        "from pointsman.tools.sandbox.process import bounded\n"
        f"job = Job(program='/bin/sleep', arguments=('{mark(619)}',), bounds=SandboxLimits(seconds=600))\n"
        "asyncio.run(bounded(find_sandbox(sys.argv[1]), job))\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, str(started), box)
    await _until_running(mark(619), expected=True)
    parent.kill()
    await parent.wait()
    await _until_running(mark(619), expected=False)


async def test_a_sandbox_without_its_parent_does_not_start() -> None:
    box = box_or_skip("landlock")
    line = box.command_line(Job(program="/bin/echo", arguments=("begun",)))
    other = await asyncio.create_subprocess_exec("/bin/sh", "-c", '"$@"; :', "sh", *line, stdout=PIPE, stderr=PIPE)
    output, errors = await other.communicate()
    assert (output, errors) == (b"", b"not confined: the process that started it has ended\n")
    assert errors.startswith(box.complaints)


@each_box
async def test_a_cancelled_program_has_ended_when_its_call_returns(box: BoxName) -> None:
    box_or_skip(box)
    running = asyncio.create_task(ran(box, f"exec sleep {mark(618)}"))
    await _until_running(mark(618), expected=True)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not _running(mark(618))


@each_box
async def test_a_program_cancelled_at_any_moment_of_its_start_has_ended(box: BoxName) -> None:
    """Early on, the sandbox has not yet arranged that its processes end with the first one."""
    box_or_skip(box)
    for delay in range(60):
        running = asyncio.create_task(ran(box, f"exec sleep {mark(623)}"))
        await asyncio.sleep(delay * 0.0002)
        running.cancel()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(asyncio.CancelledError):
                await running
    assert not _running(mark(623))


@each_box
def test_the_end_of_an_event_loop_amid_a_start_leaves_no_program(box: BoxName) -> None:
    box_or_skip(box)

    async def call(turns: int) -> asyncio.Task[ProcessResult]:
        running = asyncio.create_task(ran(box, f"exec sleep {mark(624)}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        return running

    for turns in range(30):
        assert asyncio.run(call(turns)).cancelled()
        assert not _running(mark(624))


@each_box
@pytest.mark.parametrize("turns", range(5))
@pytest.mark.filterwarnings("always::ResourceWarning")
def test_the_end_of_an_event_loop_leaves_no_program(box: BoxName, turns: int, recwarn: pytest.WarningsRecorder) -> None:
    """The end of a loop cancels all tasks at once, also those that others wait for."""
    box_or_skip(box)
    calls = list[asyncio.Task[ProcessResult]]()

    async def call_and_cancel() -> None:
        calls.append(asyncio.create_task(ran(box, f"exec sleep {mark(622)}")))
        await _until_running(mark(622), expected=True)
        calls[0].cancel()
        for _ in range(turns):
            await asyncio.sleep(0)

    asyncio.run(call_and_cancel())
    assert calls.pop().cancelled()
    gc.collect()
    assert [str(one.message) for one in recwarn] == []
    assert not _running(mark(622))


@each_box
async def test_a_program_has_no_privileges_and_can_gain_none(box: BoxName) -> None:
    box_or_skip(box)
    running = asyncio.create_task(ran(box, f"exec sleep {mark(620)}"))
    await _until_running(mark(620), expected=True)
    status = _status(mark(620))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


IN_A_CONTAINER: Final = """
import base64, ctypes, sys
from pointsman.tools.sandbox.confine import Kernel, filter_calls
from pointsman.tools.sandbox.process import SandboxMissing, find_sandbox

kernel = Kernel()
kernel.prctl(38, ctypes.c_ulong(1))
filter_calls(kernel, sys.argv[1])
for preference in ("bubblewrap", "auto"):
    try:
        print(find_sandbox(preference).name)
    except SandboxMissing as why:
        print(why)
"""
"""Selects a sandbox after losing the right to namespaces and mounts, like a container with Docker's profile."""


def filter_of_containers() -> bytes:
    """Return the refusals of Docker's profile that concern namespaces and mounts."""
    machine = seccomp.MACHINES[os.uname().machine]
    load, any_bit, equal, answer = 0x20, 0x45, 0x15, 0x06
    steps = [(load, 0, 0, 0)]
    for name in ("mount", "umount2", "unshare", "setns", "pivot_root"):
        steps += [(equal, 0, 1, seccomp.REFUSED[name][machine.column]), (answer, 0, 0, REFUSE)]
    steps += [(equal, 0, 1, CLONE3), (answer, 0, 0, UNKNOWN)]
    steps += [(equal, 0, 3, seccomp.CLONE[machine.column]), (load, 0, 0, 16)]
    steps += [(any_bit, 0, 1, NEW_NAMESPACES), (answer, 0, 0, REFUSE), (answer, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", kind, yes, no, value) for kind, yes, no, value in steps)


def test_landlock_confines_a_program_without_namespaces() -> None:
    box_or_skip("bubblewrap")
    box_or_skip("landlock")
    ended = subprocess.run(
        [sys.executable, "-c", IN_A_CONTAINER, base64.b64encode(filter_of_containers()).decode()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    missing, found = ended.stdout.splitlines()
    assert "bubblewrap: " in missing
    assert "namespace" in missing
    assert found == "landlock"


def test_without_a_sandbox_the_refusal_lists_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    take_boxes_away(monkeypatch)
    with pytest.raises(SandboxMissing, match="bubblewrap: it was taken away; landlock: it was taken away"):
        find_sandbox()
    with pytest.raises(SandboxMissing, match="bubblewrap: it was taken away") as caught:
        find_sandbox("bubblewrap")
    assert "landlock" not in str(caught.value)


@pytest.mark.parametrize(("system", "machine"), [("darwin", "x86_64"), ("linux", "riscv64")])
def test_an_unsupported_platform_has_no_sandbox(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_sandbox.cache_clear()
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((system, "", "", "", machine)))
    with pytest.raises(SandboxMissing, match="sandboxes are not supported on"):
        find_sandbox()


def test_a_sandbox_that_fails_its_probe_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    box_or_skip("landlock")
    find_sandbox.cache_clear()
    monkeypatch.setattr(landlock, "SYSTEM", ("/",))
    with pytest.raises(SandboxMissing, match="a program in it can read files that must be hidden"):
        find_sandbox("landlock")


async def test_a_job_that_the_sandbox_cannot_confine_is_refused() -> None:
    box_or_skip("landlock")
    with pytest.raises(SandboxMissing, match="does not support a program that starts others"):
        sandbox_for(Job(program="/bin/sh", bounds=SandboxLimits(processes=2)), "landlock")


def test_each_system_call_is_listed_once_and_has_a_number() -> None:
    tables = {**seccomp.REFUSED, **seccomp.REFUSED_AMONG_OTHERS, **seccomp.STARTING}
    assert len(tables) == len(seccomp.REFUSED) + len(seccomp.REFUSED_AMONG_OTHERS) + len(seccomp.STARTING)
    for column in (0, 1):
        numbers = [one[column] for one in tables.values() if one[column] is not None]
        assert len({*numbers}) == len(numbers)
        assert max(number for number in numbers if number is not None) < seccomp.NEW


def _running(mark: str) -> list[int]:
    """Return the processes of this machine that run `sleep` with that argument."""
    found: list[int] = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cmdline").read_bytes().split(b"\0")[-2:] == [mark.encode(), b""]:
                found += [int(one.name)] if (one / "comm").read_text() == "sleep\n" else []
        except OSError:
            continue
    return found


async def _until_running(mark: str, *, expected: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while bool(_running(mark)) is not expected:  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(0.005)


def _status(mark: str) -> dict[str, str]:
    """Return its status in /proc."""
    (pid,) = _running(mark)
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
