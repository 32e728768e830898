"""MCP server: the library's verbs as tools, each saved workflow as a tool, documents as resources.

stdio ─┐
       ├─▶ face (official SDK) ─▶ authoring.Workbench ─▶ app
/mcp ──┘        caller: the login of this machine, or the owner of an API key
"""

from __future__ import annotations

from pointsman.extras import need

need("server", "The MCP server")
