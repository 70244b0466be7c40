"""A cluster in memory: objects and their versions, and the API server's rules for changing them."""
