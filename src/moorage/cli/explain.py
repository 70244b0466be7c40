"""`moorage explain`: why this node, or why none."""

import click

from moorage.cli import documents, inputs, options


@click.command()
@click.argument("pod")
@options.cluster
@options.optional_files
@options.configuration
@options.answer_output
@options.everything("Show every node that fits, and every name.")
def explain(
    pod: str,
    paths: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    output: str,
    *,
    show_all: bool,
) -> None:
    """Say where POD would run and why, or why it stays pending.

    POD is namespace/name, or a name that only one pod has. One scheduling cycle is run for it, and
    every verdict and score is kept; nothing is changed. Pods with a node count as running there,
    other pending pods do not count. A pod that has a node itself is looked at as if it were to be
    scheduled again.

    The cluster is in files (-f), or a live one (--kubeconfig, else $KUBECONFIG), which is read and
    not touched.
    """
    from moorage import explain as run_explain

    manifest = inputs.files_or_cluster(paths, kubeconfig, context)
    explained = run_explain(manifest.everything, pod, config_file)
    if output == "table":
        from moorage.cli import explain_tables

        explain_tables.show(explained, manifest.skipped, show_all=show_all)
    else:
        documents.write(explained.to_dict(), output)
