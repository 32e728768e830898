"""Command tools: local programs that the operator names, with arguments of a call, run in the sandbox."""
