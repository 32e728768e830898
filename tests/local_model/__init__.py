"""A real model server for tests: that of llama.cpp, with weights of a third of a megabyte, which are written here."""
