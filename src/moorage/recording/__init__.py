"""`moorage record`: the changes of a live cluster as a recording that `simulate replay` reads."""
