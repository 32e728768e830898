"""A model server of the tests' own: llama.cpp's, with weights of a third of a megabyte that are written here."""
