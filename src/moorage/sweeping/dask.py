"""Workers of an existing Dask cluster: `--on dask=tcp://scheduler:8786`.

Every worker needs Moorage of the same version, and the plugins that a configuration names. The
cluster's objects are sent once, not with every run.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

from moorage.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

CONNECT_SECONDS = 10


def as_completed(
    function: Callable[[T], R], items: Sequence[T], address: str
) -> Iterator[tuple[int, R]]:
    """Call a function for every item on a cluster's workers; yields (index, result)."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError("Dask is not installed; write: pip install distributed") from None
    if not items:
        return
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError) as error:
        first_line = str(error).split("\n")[0] or type(error).__name__
        raise InputError(f"Dask scheduler {address}: {first_line}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(
                f"Dask scheduler {address}: no worker within {CONNECT_SECONDS} s"
            ) from None
        shared = client.scatter(function, broadcast=True, hash=False)
        futures = [client.submit(_call, shared, item, pure=False) for item in items]
        indexes = {future.key: index for index, future in enumerate(futures)}
        for future, result in distributed.as_completed(futures, with_results=True):
            yield indexes[future.key], result


def _call(function: Callable[[T], R], item: T) -> R:
    return function(item)
