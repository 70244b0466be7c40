"""What an object has to look like to be let in, and what it gets on the way."""
