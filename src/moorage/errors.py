"""What can go wrong, as a tree.

    MoorageError
    ├── InputError        bad input: one line that says where, what and what to do; exit code 2
    │   ├── ManifestError     an object that cannot be read
    │   ├── ConfigError       a KubeSchedulerConfiguration that does not hold
    │   └── KubeconfigError   a way to a cluster that leads nowhere
    ├── PluginError       a plugin raised or broke its contract; names the plugin
    └── InvariantError    a mistake of ours: something that must always hold does not

Trouble outside (a refused binding, a lost connection) is an outcome, not an exception.
"""

# What a plugin's code may raise without taking everybody along: `sys.exit` is trouble like any
# other there, while Ctrl-C is meant for us.
ANYTHING = (Exception, SystemExit)


class MoorageError(Exception):
    """Anything that Moorage raises on purpose."""


class InputError(MoorageError):
    """Input that cannot be used; its text is the one line that a person reads."""


class ManifestError(InputError):
    """An object that cannot be read: names file, document, kind/name and field."""


class ConfigError(InputError):
    """A configuration that does not hold; `problems` has one line per fault."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        several = f"[{', '.join(self.problems)}]"
        return self.problems[0] if len(self.problems) == 1 else several


class KubeconfigError(InputError):
    """A kubeconfig, or a cluster's own credentials, that cannot be used: names file and field."""


class PluginError(MoorageError):
    """A plugin raised, or broke its contract."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(plugin, text)
        self.plugin = plugin
        self.text = text

    def __str__(self) -> str:
        return self.text


class InvariantError(MoorageError):
    """Something that must always hold does not."""
