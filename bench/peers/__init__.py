"""Other platforms beside ours: `make bench-peers`. Each is installed into an environment of its own."""
