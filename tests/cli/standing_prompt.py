"""A process that runs one command after another: it reads JSON lists and writes exit codes.

Ctrl-C stops the running command, as in a terminal; between commands it has no effect.
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
        except KeyboardInterrupt:  # It arrived before the command began or after it ended.
            code = 130
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        told.write(json.dumps({"code": code, "err": sys.stderr.getvalue()}) + "\n")
        told.flush()


if __name__ == "__main__":
    main()
