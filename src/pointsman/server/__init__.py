"""The server: all that the command line can, over HTTP, streamed and guarded. It asks `app` and adds nothing."""
