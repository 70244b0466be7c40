"""Seeds of the storms: MOORAGE_SEED=7 for that one, MOORAGE_SEEDS=1000 for so many."""

import os


def seeds(count):
    """So many seeds, unless somebody asked for others."""
    if "MOORAGE_SEED" in os.environ:
        return [int(os.environ["MOORAGE_SEED"])]
    return range(int(os.environ.get("MOORAGE_SEEDS", count)))
