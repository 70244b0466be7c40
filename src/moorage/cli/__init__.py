"""The command line: the only package that composes the others and prints."""
