"""Tools: what agents and tool nodes may call. The registry, Python functions, canned results, built-ins."""
