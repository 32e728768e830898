"""Tools that agents and tool nodes call: the registry, Python functions, scripted tools and built-in tools."""
