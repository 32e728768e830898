"""Tools of MCP servers. A server is connected when one of its tools is first needed, and again after it fails."""
