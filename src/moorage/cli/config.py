"""`moorage config`: print the default configuration, check a file."""

from typing import Any

import click


@click.group(short_help="Print and check scheduler configurations.")
def config() -> None:
    """Print and check scheduler configurations (KubeSchedulerConfiguration v1)."""


@config.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Format of the output.",
)
def default(output: str) -> None:
    """Print the configuration that is used when none is given."""
    from moorage.api import config as configurations
    from moorage.cli import documents

    documents.write(configurations.to_dict(configurations.load()), output)


@config.command()
@click.argument("file")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the output.",
)
@click.pass_context
def validate(context: click.Context, file: str, output: str) -> None:
    """Check FILE and name every fault in it."""
    from moorage.api import config as configurations
    from moorage.cli import documents
    from moorage.errors import ConfigError

    profiles: list[dict[str, Any]] = []
    problems: list[str] = []
    try:
        profiles = [
            {"schedulerName": profile.scheduler_name, "plugins": len(profile.plugins.names())}
            for profile in configurations.load(file).profiles
        ]
    except ConfigError as error:
        problems = error.problems
    if output == "json":
        verdict = {"file": file, "valid": not problems, "profiles": profiles, "problems": problems}
        documents.write(verdict, output)
    else:
        _print_verdict(file, profiles, problems)
    context.exit(2 if problems else 0)


def _print_verdict(file: str, profiles: list[dict[str, Any]], problems: list[str]) -> None:
    for problem in problems:
        click.echo(problem, err=True)
    if not problems:
        click.echo(f"{click.format_filename(file)}: valid")
    for profile in profiles:
        click.echo(f"  {profile['schedulerName']}: {profile['plugins']} plugins")
