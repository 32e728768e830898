"""A prompt in a process of its own that takes one command after another: JSON lists come in, exit codes go out.

Ctrl-C stops the command that runs, as at a prompt; between commands it means nothing.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys

from pointsman.cli.error_boundary import run_guarded


def main() -> None:
    told = os.fdopen(os.dup(1), "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code = run_guarded(json.loads(line))
        except KeyboardInterrupt:  # it came before the command was under way, or just behind it
            code = 130
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        told.write(json.dumps({"code": code, "err": sys.stderr.getvalue()}) + "\n")
        told.flush()


if __name__ == "__main__":
    main()
