"""Objects of requests: decoding, validation and defaults."""
