from moorage import plugin as mp
from moorage.plugins.default_binder import DefaultBinder
from moorage.testing import check_plugin, make_pod, make_state, make_table


def test_binds_by_namespace_name_and_uid():
    pod = make_pod("web", namespace="shop", uid="u1")
    state = make_state(pod, make_table([]))
    assert DefaultBinder().bind(state, pod, mp.NodeName("n1")) == mp.BindPod(
        mp.PodRef(namespace="shop", name="web", uid="u1"), mp.NodeName("n1")
    )


def test_conforms():
    check_plugin(DefaultBinder())
