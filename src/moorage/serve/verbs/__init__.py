"""An API server's manners: what happens to an object between a request and the store."""
