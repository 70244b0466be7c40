"""Four ways to change an object by telling what should be different."""
