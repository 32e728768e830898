"""An MCP server that breaks in one way: `python broken_peer.py HOW`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Final

LISTED: Final = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
FINE: Final = {"content": [{"type": "text", "text": "fine"}]}
RESULTS: Final[dict[str, Any]] = {
    "content-text": {"content": "hello"},
    "content-without-text": {"content": [{"type": "text"}]},
    "content-alien": {"content": [{"type": "alien"}]},
    "flag": {"content": [], "isError": "maybe"},
    "none": None,
    "text": "hello",
    "other": {"foo": 1},
}
"""Malformed results of a call."""


def write(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def refuse(asked: object, code: int) -> None:
    write(id=asked, error={"code": code, "message": "server says no"})


def fail(code: int) -> None:
    complain("first line\nno such table: desk")
    os._exit(code)


def noise() -> None:
    for number in range(5):
        sys.stdout.write(f"noise {number}\n")
    sys.stdout.flush()


def call(how: str, asked: object) -> None:
    match how.partition(":"):
        case ("exit", _, code):
            fail(int(code))
        case ("exit-and-leave-child", _, _):
            subprocess.Popen(["sleep", "5"])  # It holds the pipes open.
            fail(4)
        case ("error", _, code):
            refuse(asked, int(code))
        case ("malformed", _, name):
            write(id=asked, result=RESULTS[name])
        case ("hang", _, _):
            complain("waits for a lock")
            time.sleep(5)
        case _:
            noise()
            write(id=asked, result=FINE)


def answer(how: str, asked: object, method: str, params: dict[str, Any]) -> None:
    match method:
        case _ if how == "refuse-all":
            refuse(asked, -32000)
        case _ if how == "malformed-start":
            write(id=asked, result={"x": 1})
        case "initialize":
            about = {"name": "broken", "version": "1"}
            version = params["protocolVersion"]
            write(id=asked, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
        case "tools/list":
            write(id=asked, result={"tools": [{"name": 1}]} if how == "list" else LISTED)
        case "tools/call":
            call(how, asked)
        case _:
            refuse(asked, -32601)


def serve(how: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer(how, message["id"], message["method"], message.get("params", {}))


if __name__ == "__main__":
    match sys.argv[1]:
        case "start-exit":
            fail(3)
        case "start-exit-and-leave-child":
            subprocess.Popen(["sleep", "5"])
            fail(3)
        case "start-signal":
            os.kill(os.getpid(), 9)
        case "start-close":
            complain("no such table: desk")
            os.close(1)
            time.sleep(5)
        case "start-noise":
            noise()
            os._exit(2)
        case how:
            serve(how)
