"""`moorage simulate replay`: a recorded run again, exactly or under another configuration."""

import click

from moorage.cli import options

DIFFERENT = 1


@click.command(short_help="A recorded run again, exactly or under another configuration.")
@click.argument("file", metavar="FILE")
@options.configuration
@options.output(*options.OUTPUTS)
@options.everything("List every pod that moves.")
@click.pass_context
def replay(
    context: click.Context, file: str, config_file: str | None, output: str, *, show_all: bool
) -> None:
    """Make a run again that `moorage simulate --record FILE` wrote.

    Without --config every call of the scheduler is made again and compared byte for byte; exit code
    1 says that something came out otherwise. With --config, what happened around the scheduler is
    played to one with that configuration, and the outcomes are compared.
    """
    from moorage.cli import documents
    from moorage.planning import recording
    from moorage.planning.replay import replay as again
    from moorage.planning.replay import rerun

    recorded = recording.read(file)
    if config_file is None:
        same = again(recorded)
        if output == "table":
            from moorage.cli import replay_tables

            replay_tables.show(same)
        else:
            documents.write(same.to_dict(), output)
        context.exit(0 if same.is_same else DIFFERENT)
    other = rerun(recorded, config_file)
    if output == "table":
        from moorage.cli import replay_tables

        replay_tables.show_rerun(other, show_all=show_all)
    else:
        documents.write(other.to_dict(), output)
