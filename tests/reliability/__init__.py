"""The reliability scorecard: experiments that try to lose, repeat or corrupt something, and the figures they find."""
