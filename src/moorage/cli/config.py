"""`moorage config`: print the default configuration, check a file, bring an old one up to date."""

from typing import Any

import click

from moorage import terminal
from moorage.cli import documents, options


@click.group(short_help="Print and check scheduler configurations.")
def config() -> None:
    """Print and check scheduler configurations (KubeSchedulerConfiguration v1)."""


@config.command()
@options.document("yaml", "json")
def default(output: str) -> None:
    """Print the default configuration."""
    from moorage.api import config as configurations

    documents.write(configurations.to_dict(configurations.load()), output)


@config.command()
@click.argument("file")
@options.document("text", "json")
@click.pass_context
def validate(context: click.Context, file: str, output: str) -> None:
    """Check FILE and print every error in it.

    Its plugins are loaded, as at the start of a scheduler.
    """
    from moorage.api import config as configurations
    from moorage.core.scheduler import Scheduler
    from moorage.errors import ConfigError

    profiles: list[dict[str, Any]] = []
    problems: list[str] = []
    try:
        configuration = configurations.load(file)
    except ConfigError as error:
        problems = error.problems
    else:
        profiles = [
            {"schedulerName": profile.scheduler_name, "plugins": len(profile.plugins.names())}
            for profile in configuration.profiles
        ]
        try:
            Scheduler(configuration)
        except ConfigError as error:
            problems = [f"{file}: {problem}" for problem in error.problems]
    if output == "json":
        verdict = {"file": file, "valid": not problems, "profiles": profiles, "problems": problems}
        documents.write(verdict, output)
    elif problems:
        click.echo(terminal.visible("\n".join(problems)), err=True)
    else:
        click.echo(f"{click.format_filename(file)}: valid")
        for profile in profiles:
            click.echo(f"  {profile['schedulerName']}: {profile['plugins']} plugins")
    context.exit(2 if problems else 0)


@config.command(short_help="Translate a legacy Policy file.")
@click.argument("file")
@options.document("yaml", "json")
def migrate(file: str, output: str) -> None:
    """Print the configuration that is equivalent to the legacy Policy in FILE.

    FILE has predicates and priorities, in JSON or YAML, or inside a ConfigMap. Fields that have no
    equivalent and no effect are listed on standard error; others are an error (exit code 2).
    """
    from moorage.api import policy_files

    migration = policy_files.migrate(file)
    for warning in migration.warnings:
        click.echo(f"moorage: {terminal.visible(warning)}", err=True)
    documents.write(migration.configuration, output)


@config.command(short_help="Print the RBAC roles of `moorage run`.")
@options.configuration
@click.option("--name", default="moorage", show_default=True, help="The name of the roles.")
@click.option("--shadow", is_flag=True, help="The read-only role of `moorage run --shadow`.")
def rbac(config_file: str | None, name: str, *, shadow: bool) -> None:
    """Print the minimal RBAC roles that `moorage run` needs with a configuration."""
    from moorage.api import config as configurations
    from moorage.api import documents
    from moorage.live import access, start

    configuration = configurations.load(config_file)
    plugins = start.plugins(configuration)
    if shadow:
        roles = access.read_only(plugins, name, configuration.feature_gates)
    else:
        roles = access.roles(configuration, plugins, name)
    click.echo("---\n".join(map(documents.as_yaml, roles)), nl=False)
