"""Policy files, the configuration of kube-scheduler up to 1.22: predicates, priorities, extenders.

    migration = policy_files.migrate("policy.cfg")
    migration.configuration    the equivalent KubeSchedulerConfiguration, as plain data
    migration.warnings         what has no equivalent and is omitted

policy.py reads a file, migration.py migrates it.
"""

from moorage.api.policy_files.migration import Migration, migrate

__all__ = ["Migration", "migrate"]
