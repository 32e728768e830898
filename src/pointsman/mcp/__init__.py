"""MCP server: the library's verbs as tools, each saved workflow as a tool, documents as resources.

stdio ─┐
       ├─▶ face (official SDK) ─▶ authoring.Workbench ─▶ app
/mcp ──┘        caller: the login of this machine, or the owner of an API key
"""
