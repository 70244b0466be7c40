"""The options that commands share."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

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


class Number(click.FloatRange):
    """A finite number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; refuses infinity and NaN."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def files(command: F) -> F:
    """`-f PATH`, once or more."""
    return _files(required=True)(command)


def optional_files(command: F) -> F:
    """`-f PATH`, any number of times."""
    return _files(required=False)(command)


def files_or_cluster(command: F) -> F:
    """`-f PATH`, or a live cluster by `--kubeconfig` and `--context`."""
    return cluster(optional_files(command))


def _files(*, required: bool) -> Callable[[F], F]:
    return click.option(
        "-f",
        "--filename",
        "paths",
        metavar="PATH",
        multiple=True,
        required=required,
        help="A YAML or JSON file of Kubernetes objects, a folder of them, or - for standard "
        "input. May be repeated.",
    )


def cluster(command: F) -> F:
    """`--kubeconfig FILE` and `--context NAME`."""
    command = click.option(
        "--context", metavar="NAME", help="A context of the kubeconfig; else its current one."
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        help="The way to a cluster. Without it: the pod that this runs in, KUBECONFIG, or "
        "~/.kube/config.",
    )(command)


def configuration(command: F) -> F:
    """`--config FILE`."""
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="A KubeSchedulerConfiguration; plugins that it names by file are looked for beside "
        "it. Without it: kube-scheduler's defaults.",
    )(command)


def seed(command: F) -> F:
    """`--seed N`."""
    return click.option(
        "--seed", type=int, default=0, show_default=True, help="Decides between equal nodes."
    )(command)


def record(command: F) -> F:
    """`--record FILE`."""
    return click.option(
        "--record",
        "record_file",
        metavar="FILE",
        help="Keep every call of the scheduler in FILE, for `simulate replay`; .gz compresses it.",
    )(command)


def workers(command: F) -> F:
    """`--workers N`."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many processes work at it. Without it: one for each core.",
    )(command)


def output(*choices: str) -> Callable[[F], F]:
    """`-o FORMAT`, of an answer."""
    return _output(choices, "Tables for people, or one document for programs.")


def document(*choices: str) -> Callable[[F], F]:
    """`-o FORMAT`, of a document that people read as well."""
    return _output(choices, "Format of the output.")


def _output(choices: tuple[str, ...], what: str) -> Callable[[F], F]:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=what,
    )


def everything(what: str) -> Callable[[F], F]:
    """`-a`, to print everything."""
    return click.option("-a", "--all", "show_all", is_flag=True, help=what)
