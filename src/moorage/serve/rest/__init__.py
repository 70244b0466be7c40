"""The API on the wire: HTTP requests in, JSON out, by aiohttp."""
