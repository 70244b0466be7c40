import pytest

from moorage import plugin as mp
from moorage.api.pod import Container, ImageVolume, Volume
from moorage.plugins import image_locality
from moorage.plugins.image_locality import ImageLocality
from moorage.testing import check_plugin, make_node, make_pod, make_state, make_table, run_plugin

MIB = 1024 * 1024


def image(mebibytes):
    return f"image-{mebibytes}"


def node(name, *sizes):
    return make_node(name, images={f"{image(size)}:latest": size * MIB for size in sizes})


def pod(*sizes):
    return make_pod(images=[image(size) for size in sizes])


def scores(wanting, *nodes):
    ran = [
        run_plugin(ImageLocality(), wanting, one, others=[n for n in nodes if n is not one])
        for one in nodes
    ]
    assert all(one.status == mp.SUCCESS for one in ran)
    assert [one.raw for one in ran] == [one.score for one in ran]  # It does not normalise.
    return [one.score for one in ran]


def init_and_container():
    return make_pod(
        init_containers=(Container(image=image(300)),), containers=(Container(image=image(30)),)
    )


def volume_and_container():
    volume = Volume(name="v", image=ImageVolume(reference=image(300)))
    return make_pod(volumes=(volume,), images=[image(30)])


@pytest.mark.parametrize(
    ("wanting", "nodes", "expected"),
    [
        pytest.param(
            pod(40, 250),
            [node("n1", 40), node("n2", 250)],
            [0, 5],
            id="the larger image counts, the smaller is below the threshold",
        ),
        pytest.param(
            pod(40, 300), [node("n1", 40, 300), node("n2")], [7, 0], id="both images on one node"
        ),
        pytest.param(
            pod(10, 4000),
            [node("n1", 4000), node("n2")],
            [100, 0],
            id="no more than 1000 MiB per container",
        ),
        pytest.param(
            pod(10, 4000),
            [node("n1", 4000), node("n2"), node("n3")],
            [66, 0, 0],
            id="the share is of all nodes",
        ),
        pytest.param(
            pod(300, 600, 900),
            [node("n1", 600, 900), node("n2", 300, 600, 900), node("n3")],
            [32, 36, 0],
            id="wider spread counts more",
        ),
        pytest.param(
            volume_and_container(),
            [node("n1", 300), node("n2", 30)],
            [12, 0],
            id="an image volume adds to the sum, not to the number of containers",
        ),
        pytest.param(
            init_and_container(),
            [node("n1", 300), node("n2", 30)],
            [6, 0],
            id="an init container adds to both",
        ),
        pytest.param(
            pod(300, 300), [node("n1", 300), node("n2")], [14, 0], id="twice used, twice counted"
        ),
        pytest.param(pod(300), [node("n1"), node("n2")], [0, 0], id="no node has the image"),
    ],
)
def test_score(wanting, nodes, expected):
    assert scores(wanting, *nodes) == expected


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        pytest.param("nginx", "nginx:latest", id="no tag"),
        pytest.param("reg:5000/a", "reg:5000/a:latest", id="a registry's port is no tag"),
        pytest.param("reg:5000/a:v1", "reg:5000/a:v1", id="port and tag"),
        pytest.param("a@sha256:x", "a@sha256:x", id="a digest stays"),
        pytest.param("", ":latest", id="no image at all"),
    ],
)
def test_normalized(name, normalized):
    assert image_locality.normalized(name) == normalized


def test_a_share_is_truncated_per_image():
    # 100 MiB + 1 byte on two of three nodes, twice: each is truncated before they are added.
    size = 100 * MIB + 1
    names = [f"x{i}:1" for i in range(2)]
    nodes = [make_node(f"n{i}", images=dict.fromkeys(names, size)) for i in range(2)]
    wanting = make_pod(images=names)
    each = int(float(size) * (2.0 / 3.0))
    expected = 100 * (2 * each - 23 * MIB) // (2000 * MIB - 23 * MIB)
    assert scores(wanting, *nodes, make_node("n2")) == [expected, expected, 0]


def test_a_pod_without_containers():
    # The upper bound is then below the lower one, which is looked at first.
    volumes = tuple(Volume(name="v", image=ImageVolume(reference=image(s))) for s in (300,))
    wanting = make_pod(containers=(), volumes=volumes)
    table = make_table([node("n1", 300), node("n2")])
    state = make_state(wanting, table)
    plugin = ImageLocality()
    rows = [table.row_of[name] for name in ("n1", "n2")]
    assert [plugin.score(state, wanting, table.info(row)) for row in rows] == [100, 0]
    assert plugin.score_all(state, wanting, table)[rows].tolist() == [100, 0]


def test_order_of_containers_does_not_matter_to_reads():
    assert ImageLocality().reads(pod(40, 300)) == ImageLocality().reads(pod(300, 40))
    assert ImageLocality().reads(volume_and_container()) != ImageLocality().reads(pod(300, 30))


def test_conforms():
    check_plugin(ImageLocality())
