"""Public traces: their columns become nodes, and pods that come and go at their times."""

import pytest

from moorage.api.node import Node
from moorage.errors import InputError
from moorage.scenarios import google, openb
from moorage.scenarios.play import Play

OPENB_NODES = """\
sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,32000,262144,2,V100M32
openb-node-0001,96000,786432,0,
"""
OPENB_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,4000,15258,1,500,,LS,Running,1000,,1010
openb-pod-0001,4000,15258,1,1000,V100M16|V100M32,LS,Succeeded,1060,1260,1100
openb-pod-0002,8000,30517,0,0,,BE,Failed,1000,1300,
openb-pod-0003,4000,15258,1,1000,A10,LS,Pending,1100,,
"""
MACHINES = """\
0,5,0,HofLGz==,0.5,0.25
0,6,0,HofLGz==,1,1
600000000,7,0,HofLGz==,1,1
"""
TASKS = """\
0,,10,0,,0,user,2,9,0.25,0.1,,0
5000000,,10,0,5,1,user,2,9,0.25,0.1,,0
65000000,,10,0,5,4,user,2,9,0.25,0.1,,0
10000000,,11,0,,0,user,2,0,0.5,0.5,,0
"""


def write(folder, **files):
    paths = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(text)
    return paths


def test_openb(tmp_path):
    paths = write(tmp_path, pods=OPENB_PODS, nodes=OPENB_NODES)
    play = Play(openb.load(paths["pods"], paths["nodes"]))
    nodes = {node.name: node.status.allocatable for node in play.simulation.cluster.all(Node)}
    assert nodes["openb-node-0000"][openb.GPU_MILLI] == "2000"
    assert openb.GPU_MILLI not in nodes["openb-node-0001"]
    sim = play.run()
    result = sim.result
    assert (result.created, result.bound) == (4, 3)
    [group] = result.pending  # There is no A10.
    assert group.pods == ("default/openb-pod-0003",)
    assert "node affinity" in group.reason
    # The second came after 60 s and ran for 160, the third for 300 from its creation.
    assert result.ended == 2
    used = result.samples[-1].requested
    assert (used["cpu"], used[openb.GPU_MILLI]) == (4000, 500)


def test_openb_times_begin_with_the_first(tmp_path):
    plan = openb.load(write(tmp_path, pods=OPENB_PODS)["pods"])
    arrivals = [arrival for _, arrival in plan.arrivals(0)]
    assert [each.at for each in arrivals] == [0, 0, 60, 100]
    assert [each.seconds for each in arrivals] == [None, 300, 160, None]


def test_openb_with_jobs_and_queues(tmp_path):
    head = OPENB_PODS.partition("\n")[0] + ",job,queue\n"
    rows = ["a,4000,100,0,0,,,,0,100,0,j,q", "b,4000,100,0,0,,,,5,100,5,j,q", "c,4,1,0,0,,,,5,,,,"]
    plan = openb.load(write(tmp_path, pods=head + "\n".join(rows))["pods"])
    arrivals = {arrival.name: arrival for _, arrival in plan.arrivals(0)}
    assert [(each.gang, each.gang_size) for each in arrivals.values()] == [
        ("j", 2),
        ("j", 2),
        ("", 0),
    ]
    assert arrivals["a"].pod.labels["moorage.dev/queue"] == "q"
    assert "moorage.dev/queue" not in arrivals["c"].pod.labels


def test_google_without_a_head(tmp_path):
    paths = write(tmp_path, tasks=TASKS, machines=MACHINES)
    play = Play(google.load(paths["tasks"], paths["machines"], cpu="32", memory="128Gi"))
    nodes = {node.name: node.status.allocatable for node in play.simulation.cluster.all(Node)}
    assert nodes.keys() == {"machine-5", "machine-6"}  # The third came later.
    assert nodes["machine-5"]["cpu"] == "16000m"
    sim = play.run()
    assert sim.result.ended == 1
    assert sim.placements == {"default/task-11-0": "machine-6"}  # Half of memory fits there only.


def test_google_with_names(tmp_path):
    head = "job_id,task_index,time,event_type,cpu_request,memory_request,priority\n"
    text = head + "1,0,2000000,SUBMIT,0.1,0.1,100\n1,0,4000000,FINISH,,,\n"
    plan = google.load(write(tmp_path, tasks=text)["tasks"])
    [(_, arrival)] = plan.arrivals(0)
    assert (arrival.at, arrival.seconds, arrival.pod.priority) == (2.0, 2.0, 100)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        pytest.param(openb.load, "", "is empty", id="empty"),
        pytest.param(
            openb.load,
            "name,cpu_milli\na,1\n",
            "line 1: no column memory_mib, creation_time; there is name, cpu_milli",
            id="columns that are not there",
        ),
        pytest.param(
            openb.load,
            "name,cpu_milli,memory_mib,creation_time\na,many,1,0\n",
            'line 2, cpu_milli: must be a number, is "many"',
            id="not a number",
        ),
        pytest.param(
            openb.load,
            "name,cpu_milli,memory_mib,creation_time\na,-5,1,0\n",
            "line 2, cpu_milli: must not be negative, is -5",
            id="less than nothing",
        ),
        pytest.param(
            openb.load,
            "name,cpu_milli,memory_mib,creation_time\n",
            "holds no pods",
            id="a head without a body",
        ),
        pytest.param(
            google.load,
            "0,,10,0,,4,u,2,9,0.25,0.1,,0\n",
            "no task is ever submitted",
            id="ends only",
        ),
        pytest.param(
            google.load,
            "0,,10,0,,0,u,2,9,x,0.1,,0\n",
            'cpu_request: must be a number, is "x"',
            id="x",
        ),
    ],
)
def test_errors(tmp_path, read, text, message):
    path = write(tmp_path, trace=text)["trace"]
    with pytest.raises(InputError) as raised:
        read(path)
    assert str(raised.value).startswith(str(path))
    assert message in str(raised.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        openb.load(tmp_path / "nowhere.csv")
