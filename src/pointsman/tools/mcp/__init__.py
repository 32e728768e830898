"""Tools of MCP servers: connected to when one of their tools is first needed, and again when they died."""
