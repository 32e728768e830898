"""Long runs. Each has its own target in the Makefile; a short version of each is an ordinary test."""
