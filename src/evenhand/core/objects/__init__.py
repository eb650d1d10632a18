"""The objects of the service, as the API shows them: one vocabulary for store, server, pages and clients."""
