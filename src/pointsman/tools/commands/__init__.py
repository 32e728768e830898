"""Programs of this machine as tools: named by the operator, filled in by arguments, run in the sandbox."""
