"""Files of an execution, confined to one directory."""
