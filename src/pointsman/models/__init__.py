"""Model providers behind the `Models` port, with prices, key scheduling, transcripts and the scripted model."""
