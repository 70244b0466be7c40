"""The HTTP API: requests, responses, watches, discovery and tables, on aiohttp."""
