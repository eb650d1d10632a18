"""The HTTP edge: application, route table, authorisation, bodies and answers."""
