"""The options that commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

OUTPUTS = ("table", "json", "yaml")


def files(command: F) -> F:
    """`-f PATH`, once or more."""
    return _files(command, required=True)


def files_or_cluster(command: F) -> F:
    """`-f PATH`, or a live cluster by `--kubeconfig` and `--context`."""
    return cluster(_files(command, required=False))


def _files(command: F, *, required: bool) -> F:
    return click.option(
        "-f",
        "--filename",
        "paths",
        metavar="PATH",
        multiple=True,
        required=required,
        help="A YAML or JSON file of Kubernetes objects, a folder of them, or - for standard "
        "input. May be repeated.",
    )(command)


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


def output(*choices: str) -> Callable[[F], F]:
    """`-o FORMAT`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="Tables for people, or one document for programs.",
    )


def everything(what: str) -> Callable[[F], F]:
    """`-a`, for those who want to see all of it."""
    return click.option("-a", "--all", "show_all", is_flag=True, help=what)
