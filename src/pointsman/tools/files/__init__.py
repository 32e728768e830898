"""Files of an execution, in a directory that nothing leads out of."""
