"""Work that the service does on its own: computing scores after the request."""
