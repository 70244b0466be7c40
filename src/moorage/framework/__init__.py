"""The contract with plugins, and the machinery that asks them."""
