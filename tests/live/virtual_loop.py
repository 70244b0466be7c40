"""An event loop in virtual time: a timer is due as soon as nothing else is left to do."""

import asyncio
import selectors


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never sleeps; `time` jumps to the next timer instead."""

    def __init__(self):
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self):
        return self.now


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        assert timeout is not None, "every task waits for something that never comes"
        self._loop.now += max(timeout, 0)
        return super().select(0)


def run(coroutine):
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
