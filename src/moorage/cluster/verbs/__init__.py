"""The verbs of the API: what happens to an object between a request and the store."""
