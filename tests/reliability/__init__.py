"""The reliability scorecard: experiments that try to lose, repeat or corrupt something, with figures of their
results."""
