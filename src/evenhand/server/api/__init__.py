"""One file per resource: request types, handlers and the rows of the route table."""
