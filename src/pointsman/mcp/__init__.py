"""The library for MCP clients: its verbs as tools, each saved workflow as a tool, documents as resources.

stdio ─┐
       ├─▶ face (official SDK) ─▶ authoring.Workbench ─▶ app
/mcp ──┘        who asks: the login of this machine, or the caller of an API key
"""
