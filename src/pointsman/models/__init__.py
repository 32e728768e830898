"""Voices: providers behind the `Models` port, prices, the transcript, and the scripted model."""
