"""A client of a server: the verbs of an installation, over HTTP, with streams that come back by themselves."""
