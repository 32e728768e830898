"""Entry point of `python -m pointsman`: the command line."""

from __future__ import annotations

from pointsman.cli import main

if __name__ == "__main__":
    main()
