"""Files of other tools, read into our vocabulary."""
