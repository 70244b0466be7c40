"""CEL, the language of DRA device selectors, as Kubernetes 1.36 offers it to them.

`compile_selector(expression).matches(device)`: an expression is parsed, type-checked and compiled
to Python closures once; an evaluation takes about a microsecond. No text of users reaches `eval`.
The package imports nothing of ours but quantities and errors.

Why not a package: `cel-expr-python` (C++, 16 MB wheel, 50 MB installed) evaluates in about 9 us and
knows neither sets nor two-variable comprehensions; `common-expression-language` (Rust) has no
optionals and no type check; `cel-python` (pure Python, with lark, pendulum and jmespath) interprets
a tree and checks no types. None has Kubernetes' functions (quantity, semver, ip, ...), DRA's
environment and cost limit, and these with the type rules are most of the work.
"""

from moorage.cel.selector import DeviceInput, Selector, Version, compile_selector
from moorage.cel.values import CelCompileError, CelRuntimeError

__all__ = [
    "CelCompileError",
    "CelRuntimeError",
    "DeviceInput",
    "Selector",
    "Version",
    "compile_selector",
]
