"""Other platforms beside ours: `make bench-peers`. They are installed into an environment of their own."""
