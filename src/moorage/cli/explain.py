"""`moorage explain`: why this node, or why none."""

from typing import TYPE_CHECKING, Any

import click

from moorage import terminal
from moorage.cli import documents, inputs, options, plugin_output
from moorage.cli.progress import StatusLine
from moorage.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moorage.api.config import SchedulerConfiguration, Source
    from moorage.api.manifests import Manifest
    from moorage.api.pod import Pod
    from moorage.expansion.refusals import Refusal
    from moorage.explaining.dry_run import DryRun
    from moorage.explaining.grouping import ReasonGroup
    from moorage.explaining.recorded import Recorded

# From so many pods on, a status line says how far it is.
MANY_PODS = 200


@click.command()
@click.argument("pod", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of POD, or of all pods.")
@click.option(
    "-l", "--selector", metavar="SELECTOR", help="Pods with these labels, such as app=web."
)
@options.cluster
@options.optional_files
@options.configuration_or("see above, else the configuration of kube-scheduler")
@options.answer_output
@options.everything("Show every feasible node, and every name.")
def explain(
    pod: str | None,
    namespace: str | None,
    selector: str | None,
    paths: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    output: str,
    *,
    show_all: bool,
) -> None:
    """Explain why POD is pending, or why a node is selected for it.

    POD is a name, NAMESPACE/NAME, pod/NAME, or a workload such as deployment/NAME, whose pending
    pods are explained. Without POD, all pending pods are explained, grouped by reason.

    One scheduling cycle runs for each pod; nothing is changed. Pods with a node count as running
    there; other pending pods do not count. A pod that has a node is explained as if it were
    scheduled again.

    The cluster is read from files (-f); without -f, from the live cluster of the kubeconfig. For a
    live cluster, the condition and the Event that its own scheduler recorded are shown as well, and
    the default of --config is the configuration at /configz of `moorage serve`, or of the
    scheduler's pod if that gives access.
    """
    from moorage.explaining import selecting
    from moorage.explaining.dry_run import DryRun

    if pod is not None and selector is not None:
        raise click.UsageError("Name a POD or a selector (-l), not both.")
    manifest, live = inputs.files_or_cluster(paths, kubeconfig, context)
    run = DryRun(manifest.everything)
    refused = [] if selector else selecting.refused(run.refusals, pod, namespace=namespace)
    try:
        pods = selecting.select(run.pods, pod, namespace=namespace, labels=selector)
    except InputError:
        if not refused:
            raise
        pods = []
    if refused:  # The question is about what is missing, not about pods that run.
        pods = [each for each in pods if not each.node_name]
    config, assumed = _configuration(config_file, live, pods, run.pods)
    config = inputs.configuration(config)
    run = run.with_config(config)
    if len(pods) == 1 and not refused:
        _explain_one(run, pods[0], live, assumed, manifest, output, show_all=show_all)
    else:
        found = (pods, refused, sum(namespace in (None, each.namespace) for each in run.pods))
        shown = assumed if live else ""
        _explain_several(run, config, found, shown, manifest, output, show_all=show_all)


def _configuration(
    config_file: str | None,
    live: "inputs.LiveCluster | None",
    selected: "list[Pod]",
    pods: "list[Pod]",
) -> "tuple[Source, str]":
    """The configuration to explain with, and what to say about it."""
    if config_file is not None:
        return config_file, config_file
    names = {pod.spec.scheduler_name for pod in selected}
    if live is not None and (found := live.configuration(names, pods)) is not None:
        from moorage.api import config

        try:
            loaded = config.load(found.plain)
            if found.by_pod and (code := _python_plugins(loaded)):
                raise ConfigError([f"names Python code ({', '.join(code)}), which is not loaded"])
            return loaded, found.source
        except ConfigError as error:  # It names plugins that are not installed here.
            problem = terminal.visible(str(error))
            click.echo(f"moorage: warning: {found.source}: {problem}", err=True)
    return None, "kube-scheduler's defaults (--config names another)"


def _python_plugins(configuration: "SchedulerConfiguration") -> list[str]:
    """The plugins that a configuration names as `module:Class` or `file.py:Class`."""
    names = {name for profile in configuration.profiles for name in profile.plugins.names()}
    return sorted(name for name in names if ":" in name)


def _explain_one(
    run: "DryRun",
    pod: "Pod",
    live: "inputs.LiveCluster | None",
    assumed: str,
    manifest: "Manifest",
    output: str,
    *,
    show_all: bool,
) -> None:
    from moorage.explaining import recorded

    with plugin_output.redirected():
        explained = run.explain(pod)
    found = recorded.read(pod, live.events(pod) if live is not None else ())
    if output != "table":
        documents.write(
            explained.to_dict() | _more(found, assumed, is_live=live is not None), output
        )
        return
    from moorage.cli import explain_tables

    explain_tables.show(explained, manifest.skipped, show_all=show_all)
    if found or live is not None:
        explain_tables.show_recorded(
            found, assumed, differs=recorded.differs(found, explained), by_cluster=live is not None
        )


def _more(found: "Recorded", assumed: str, *, is_live: bool) -> dict[str, Any]:
    """What the document of a live cluster has besides the explanation."""
    if not is_live:
        return {}
    import msgspec

    return {"recorded": msgspec.to_builtins(found), "configuration": assumed}


def _explain_several(
    run: "DryRun",
    config: "Source",
    found: "tuple[list[Pod], list[Refusal], int]",
    assumed: str,
    manifest: "Manifest",
    output: str,
    *,
    show_all: bool,
) -> None:
    from moorage.api import texts
    from moorage.explaining import grouping

    pods, refused, total = found
    if not pods and not refused and output == "table":
        click.echo(f"No pod is pending; {texts.count(total, 'pod', 'have')} a node.")
        return
    with StatusLine("explaining") as status:
        if len(pods) > MANY_PODS:
            status.say_at_once(f"{len(pods):,} pods")
        groups = grouping.by_reason(run, pods)
        together = _together(run, config, groups)
    if output == "table":
        from moorage.cli import explain_tables

        explain_tables.show_groups(
            groups, together, refused, assumed, manifest.skipped, show_all=show_all
        )
        return
    plain = [
        {"reason": each.reason, "pods": each.pods, "first": each.explanation.to_dict()}
        for each in groups
    ]
    fit = sum(len(each.pods) for each in groups if each.is_placed)
    asked: dict[str, Any] = {"alone": {"fit": fit, "pending": len(pods) - fit}}
    if together is not None:
        asked["together"] = {"fit": fit - len(together), "pending": together}
    lacking = {"refused": [each.to_dict() for each in refused]} if refused else {}
    documents.write({"groups": plain, **asked, **lacking}, output)


def _together(
    run: "DryRun", config: "Source", groups: "list[ReasonGroup]"
) -> "dict[str, str] | None":
    """Of the pods that would each fit alone: those left if all pending pods are scheduled, and why.

    None if at most one pod would fit alone.
    """
    alone = [pod for group in groups if group.is_placed for pod in group.pods]
    if len(alone) < 2:
        return None
    from moorage.api import config as configuration
    from moorage.api.pod import Pod
    from moorage.planning.packing import Packing

    objects = (obj for obj in run.objects if not (isinstance(obj, Pod) and obj.is_terminal))
    packing = Packing(objects, configuration.load(config))
    packing.pack()
    left = packing.left
    return {pod: left[pod] for pod in alone if pod in left}
