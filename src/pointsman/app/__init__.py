"""The application: the verbs that every face uses (command line, server, Python, MCP). No face has logic of its own."""

from pointsman.app.executions import Execution
from pointsman.app.installation import Pointsman
from pointsman.app.sources import Workflow

__all__ = ["Execution", "Pointsman", "Workflow"]
