"""Work that goes on when whoever asked for it is gone, for faces: they keep theirs as an execution keeps its own."""

from pointsman.runtime.behind import Behind

__all__ = ["Behind"]
