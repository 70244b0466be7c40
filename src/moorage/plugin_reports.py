"""Reports about the code of plugins: exceptions, and results that are probably not meant.

A failure costs its pod only and its reason is one line, so the traceback would be lost. A shell
adds observers to these lists; they are process-wide, because they are about code, not about a
scheduler.
"""

from collections.abc import Callable

# Called with the plugin's name and the exception.
on_exception: list[Callable[[str, BaseException], None]] = []
# Called with the plugin's name and a sentence.
on_warning: list[Callable[[str, str], None]] = []


def exception(plugin: str, raised: BaseException) -> None:
    """Report an exception that a plugin raised."""
    for observer in on_exception:
        observer(plugin, raised)


def warning(plugin: str, text: str) -> None:
    """Report a suspicious result; observers get the same one any number of times."""
    for observer in on_warning:
        observer(plugin, text)
