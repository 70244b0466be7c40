"""Run a plugin on one node, or prove that it keeps the contract of `moorage.framework.points`.

    def test_too_dirty():
        pod, node = make_pod(labels={LABEL: 200}), make_node(labels={LABEL: 201})
        assert run_plugin(CarbonAware(), pod, node).status == TOO_DIRTY

    def test_conforms():
        check_plugin(CarbonAware())

Both need nothing but Moorage itself. What fails is an AssertionError that says what to change:

    shape.py        methods, arguments, attributes, pickles
    results.py      both forms agree, each point's rules are kept, the same result every time,
                    `reads` and `depends` are correct
    hints.py        no hint rejects a change that makes a node fit

`conformance.py` runs all of them on the pods and nodes of `examples.py`; `run_plugin` is in
`moorage.testing.cycle`.
"""

from moorage.testing.checks.conformance import check_plugin
from moorage.testing.checks.results import check_twins
from moorage.testing.cycle import Ran, run_plugin

__all__ = ["Ran", "check_plugin", "check_twins", "run_plugin"]
