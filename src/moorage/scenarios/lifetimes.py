"""How long pods run once they have started: for ever, or for a time that is fixed or drawn."""

from random import Random

from msgspec import Struct


class Fixed(Struct, frozen=True):
    """Always the same."""

    seconds: float

    def draw(self, random: Random) -> float:
        return self.seconds


class Exponential(Struct, frozen=True):
    """Most are short, some are long; `seconds` is the mean."""

    seconds: float

    def draw(self, random: Random) -> float:
        return random.expovariate(1 / self.seconds) if self.seconds else 0.0


class Uniform(Struct, frozen=True):
    """Anything between two bounds."""

    least: float
    most: float

    def draw(self, random: Random) -> float:
        return random.uniform(self.least, self.most)


Lifetime = Fixed | Exponential | Uniform
