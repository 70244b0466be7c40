"""Policy files, as kube-scheduler read them until 1.22: predicates, priorities, extenders.

    migration = policy_files.migrate("policy.cfg")
    migration.configuration    the equivalent KubeSchedulerConfiguration, as plain data
    migration.warnings         what has no equivalent and is left out

names.py has the tables of names, policy.py reads a file, migration.py translates it.
"""

from moorage.api.policy_files.migration import Migration, migrate

__all__ = ["Migration", "migrate"]
