"""Run a plugin on one node, or prove that it keeps the contract of `moorage.framework.points`.

    def test_too_dirty():
        pod, node = make_pod(labels={LABEL: 200}), make_node(labels={LABEL: 201})
        assert run_plugin(CarbonAware(), pod, node).status == TOO_DIRTY

    def test_conforms():
        check_plugin(CarbonAware())

Both need nothing but Moorage itself. What fails is an AssertionError that says what to change:

    shape.py        methods, arguments, attributes, pickles
    twins.py        the per-node form and the whole-cluster form agree
    returns.py      scores in their bounds, the same answer every time, what each point allows
    freshness.py    `reads` and `depends` are honest
    hints.py        no change that would help is turned down

`conformance.py` turns to all of them with `examples.py`, `running.py` asks about one node.
"""

from moorage.testing.checks.conformance import check_plugin
from moorage.testing.checks.running import Ran, run_plugin
from moorage.testing.checks.twins import check_twins

__all__ = ["Ran", "check_plugin", "check_twins", "run_plugin"]
