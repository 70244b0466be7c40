"""The machine: observations go in, effects come out, facts stay in the journal."""
