"""The options that commands share. Each name is a decorator for a command."""

import dataclasses
import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

OUTPUTS = ("table", "json", "yaml")


def bundled(kind: type[Any], name: str, *options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Options whose values a command gets as one argument: a dataclass with a field for each."""

    def decorate(command: F) -> Any:
        @functools.wraps(command)
        def call(*args: Any, **values: Any) -> Any:
            fields = {each.name: values.pop(each.name) for each in dataclasses.fields(kind)}
            return command(*args, **values, **{name: kind(**fields)})

        decorated: Any = call
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


class LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    # The module of each command.
    modules: ClassVar[dict[str, str]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        module = importlib.import_module(f"moorage.cli.{self.modules[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


class Number(click.FloatRange):
    """A finite number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; refuses infinity and NaN."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class DurationType(click.ParamType):  # type: ignore[type-arg] # Not generic in old versions.
    """A duration as Go writes it: 15s, 1m30s."""

    name = "duration"

    def __init__(self, *, positive: bool = False) -> None:
        self._positive = positive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from moorage.api.config import durations

        if isinstance(value, float):
            return value
        try:
            seconds = durations.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._positive and seconds <= 0:
            self.fail(f"{value!r} is not longer than nothing.", param, ctx)
        return seconds


# Where `inputs` finds the value of --validate.
VALIDATE = "moorage.validate"


def _keep_validate(context: click.Context, option: click.Parameter, value: str) -> None:
    context.meta[VALIDATE] = value


validate = click.option(
    "--validate",
    type=click.Choice(("strict", "warn", "ignore")),
    default="strict",
    show_default=True,
    expose_value=False,
    callback=_keep_validate,
    help="What to do about unknown and duplicate fields in files: refuse the input, warn, or "
    "ignore them. Invalid objects are refused, unless the value is ignore; then only values are "
    "checked that would change decisions.",
)


def paths(text: str, *, required: bool = False) -> Callable[[F], F]:
    """`-f PATH`, any number of times, and `--validate`."""
    option = click.option(
        "-f", "--filename", "paths", metavar="PATH", multiple=True, required=required, help=text
    )
    return lambda command: option(validate(command))


_FILES = (
    "A YAML or JSON file of Kubernetes objects, a folder of them, an HTTP or HTTPS URL, or - for "
    "standard input. May be repeated."
)
files = paths(_FILES, required=True)
optional_files = paths(_FILES)

_context = click.option(
    "--context", metavar="NAME", help="The context of the kubeconfig. Default: its current context."
)
_kubeconfig = click.option(
    "--kubeconfig",
    metavar="FILE",
    help="The kubeconfig of the cluster. Default: the service account of the pod that this runs "
    "in, $KUBECONFIG, or ~/.kube/config.",
)


def cluster(command: F) -> F:
    """`--kubeconfig FILE` and `--context NAME`."""
    return _kubeconfig(_context(command))


def configuration_or(default: str) -> Callable[[F], F]:
    """`--config FILE`, with what a command uses without it."""
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="A KubeSchedulerConfiguration file. Paths of plugins are relative to it. Default: "
        f"{default}.",
    )


configuration = configuration_or("the configuration of kube-scheduler")
seed = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the random choice between nodes with equal scores.",
)
until = click.option(
    "--until",
    type=Number(min=0),
    metavar="SECONDS",
    help="Stop at this virtual time. Default: stop when nothing is left to do.",
)
record = click.option(
    "--record",
    "record_file",
    metavar="FILE",
    help="Record every call of the scheduler in FILE, for `simulate replay`. A name that ends in "
    ".gz compresses the file.",
)
workers = click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Number of worker processes. Default: one per core.",
)


def output(
    *choices: str, text: str = "Output format: tables, or one JSON or YAML document."
) -> Callable[[F], F]:
    """`-o FORMAT`; the first choice is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=text,
    )


# Of an answer; and of a document that people read as well.
answer_output = output(*OUTPUTS)
document = functools.partial(output, text="Format of the output.")


def everything(text: str) -> Callable[[F], F]:
    """`-a`, to print everything."""
    return click.option("-a", "--all", "show_all", is_flag=True, help=text)
