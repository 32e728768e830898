"""HTTP client of a server: the verbs of an embedded `Pointsman`, with streams that reconnect by themselves."""
