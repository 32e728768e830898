"""Comments of people on workflows and executions, with mentions of other people."""
