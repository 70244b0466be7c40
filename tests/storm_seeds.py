"""Seeds of the storms: MOORAGE_SEED=7 is that one, MOORAGE_SEEDS=1000 the first 1,000."""

import os


def seeds(count):
    """Seeds 0 to count, unless the environment names others."""
    if "MOORAGE_SEED" in os.environ:
        return [int(os.environ["MOORAGE_SEED"])]
    return range(int(os.environ.get("MOORAGE_SEEDS", count)))
