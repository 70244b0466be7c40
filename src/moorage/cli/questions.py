"""The questions that `moorage simulate` answers: a file for each, loaded when it is asked."""

import importlib

import click

QUESTIONS = ("capacity", "drain", "add-nodes", "compact", "compare", "replay")
# What can be played: each a file of its own, as well.
PLAYS = ("scenario", "trace")


class Questions(click.Group):
    """A group that does something by itself when no question is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*PLAYS, *QUESTIONS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PLAYS + QUESTIONS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(
            importlib.import_module(f"moorage.cli.simulate_{name}"), name
        )
        return command


def check(context: click.Context) -> bool:
    """Whether a question was named; complains about options that stand on its wrong side."""
    question = context.invoked_subcommand
    given = [
        option
        for option in context.command.params
        if option.name
        and context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if question is not None and given:
        flag = given[0].opts[0]
        raise click.UsageError(
            f"{flag} stands before {question}; write it behind: moorage simulate {question} {flag}"
        )
    if question is None and not context.params["paths"]:
        raise click.UsageError("Missing option '-f' / '--filename'.")
    return question is not None
