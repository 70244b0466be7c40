"""The heap: order, ties, removal, and that removed items do not pile up."""

import pickle

import pytest

from moorage.core.heap import MOST_DEAD, Heap


def heap_of(*items):
    heap = Heap()
    for name, key in items:
        heap.push(name, name.upper(), key)
    return heap


def popped(heap):
    return [heap.pop() for _ in range(len(heap))]


@pytest.mark.parametrize(
    ("items", "order"),
    [
        pytest.param([("a", 3), ("b", 1), ("c", 2)], "BCA", id="the smallest key first"),
        pytest.param([(name, 0) for name in "abcdef"], "ABCDEF", id="equal keys as they came"),
        pytest.param([("a", (1, 2)), ("b", (1, 1)), ("c", (0, 9))], "CBA", id="keys may be tuples"),
        pytest.param([], "", id="nothing in it"),
    ],
)
def test_order(items, order):
    heap = heap_of(*items)
    assert "".join(heap) == order
    assert "".join(popped(heap)) == order


def test_peek_leaves_the_item_in():
    heap = heap_of(("a", 2), ("b", 1))
    assert heap.peek() == "B"
    assert len(heap) == 2


@pytest.mark.parametrize("ask", [Heap.pop, Heap.peek], ids=["pop", "peek"])
def test_an_empty_heap_has_no_first(ask):
    heap = heap_of(("a", 1))
    heap.remove("a")
    with pytest.raises(IndexError):
        ask(heap)


def test_removed_items_are_gone_wherever_they_were():
    heap = heap_of(*((name, key) for key, name in enumerate("abcde")))
    for name in "ace":
        assert heap.remove(name) == name.upper()
        assert name not in heap
    assert len(heap) == 2
    assert heap.peek() == "B"
    assert popped(heap) == ["B", "D"]


def test_removing_what_is_not_in_is_a_mistake():
    with pytest.raises(KeyError):
        heap_of(("a", 1)).remove("b")


def test_pushing_what_is_in_is_a_mistake():
    with pytest.raises(AssertionError, match="a is in the heap already"):
        heap_of(("a", 1)).push("a", "A", 2)


@pytest.mark.parametrize(
    ("key", "order"),
    [
        pytest.param(1, ["new", "B", "C"], id="the same key keeps its position among equals"),
        pytest.param(0, ["new", "B", "C"], id="a smaller key moves up"),
        pytest.param(2, ["B", "C", "new"], id="a greater key moves down"),
    ],
)
def test_update(key, order):
    heap = heap_of(("a", 1), ("b", 1), ("c", 1))
    heap.update("a", "new", key)
    assert "new" in list(heap)
    assert popped(heap) == order


def test_an_item_that_comes_back_is_last_among_equals():
    heap = heap_of(("a", 1), ("b", 1))
    heap.remove("a")
    assert "a" not in heap
    heap.push("a", "A", 1)
    assert popped(heap) == ["B", "A"]


def test_removed_items_do_not_pile_up():
    heap = heap_of(("first", 0))
    for i in range(10_000):
        heap.push(f"{i}", "x", i + 1)
        heap.remove(f"{i}")
    assert len(heap._records) <= 2 * len(heap) + MOST_DEAD + 1
    assert popped(heap) == ["FIRST"]


def test_a_pickled_heap_goes_on_as_the_first():
    heap = heap_of(("a", 1), ("b", 1), ("c", 0), ("d", 2))
    heap.remove("c")
    copy = pickle.loads(pickle.dumps(heap))
    copy.push("e", "E", 1)
    assert popped(copy) == ["A", "B", "E", "D"]
    assert popped(heap) == ["A", "B", "D"]


# Keys that do not compare


class Knot:
    """A key that compares with some, and raises when it meets another."""

    def __init__(self, rank, *dislikes):
        self.rank = rank
        self.dislikes = dislikes

    def __lt__(self, other):
        if other.rank in self.dislikes or self.rank in other.dislikes:
            raise RuntimeError("not with that one")
        return self.rank < other.rank


def knotted(*keys):
    """A heap of items named by their ranks, and the errors for which it was rekeyed."""
    rekeyed = []

    def rekey(raised):
        rekeyed.append(str(raised))
        heap.rekey(lambda item: int(item))

    heap = Heap(rekey)
    for key in keys:
        heap.push(str(key.rank), str(key.rank), key)
    return heap, rekeyed


@pytest.mark.parametrize(
    ("keys", "use"),
    [
        pytest.param([Knot(2), Knot(1, 2)], len, id="as it comes"),
        pytest.param([Knot(9), Knot(3), Knot(1, 3)], len, id="as it comes, among others"),
        pytest.param(
            [Knot(8), Knot(9), Knot(3), Knot(1, 8)], Heap.peek, id="when it comes to its turn"
        ),
        pytest.param([Knot(9), Knot(1), Knot(2), Knot(3, 2)], Heap.pop, id="when one leaves"),
        pytest.param([Knot(1), Knot(3), Knot(9), Knot(2, 3)], list, id="when all are looked at"),
    ],
)
def test_keys_that_do_not_compare(keys, use):
    heap, rekeyed = knotted(*keys)
    first = use(heap)
    assert rekeyed == ["not with that one"]
    left = popped(heap)
    gone = [first] if use is Heap.pop else []
    assert gone + left == sorted(str(key.rank) for key in keys)
    assert len(rekeyed) == 1


def test_keys_that_do_not_compare_when_the_dead_are_buried():
    heap, rekeyed = knotted(Knot(1), Knot(3), Knot(9), Knot(2, 3))
    for rank in range(10, 10 + 2 * MOST_DEAD):
        heap.push(str(rank), str(rank), Knot(rank))
    for rank in range(10, 10 + 2 * MOST_DEAD):
        heap.remove(str(rank))
    assert len(rekeyed) == 1
    assert popped(heap) == ["1", "2", "3", "9"]


def test_keys_that_do_not_compare_when_one_changes():
    heap, rekeyed = knotted(Knot(1), Knot(2), Knot(3))
    heap.update("2", "5", Knot(5, 3))
    assert len(rekeyed) == 1
    assert popped(heap) == ["1", "3", "5"]


def test_keys_that_are_neither_equal_nor_not():
    class Neither(Knot):
        __hash__ = None

        def __eq__(self, other):
            raise ValueError("who knows")

    heap, rekeyed = knotted(Neither(1), Knot(2))
    heap.update("1", "3", Knot(3))
    assert (rekeyed, popped(heap)) == ([], ["2", "3"])


def test_a_heap_without_a_handler_raises():
    heap = heap_of(("a", 1))
    with pytest.raises(TypeError):
        heap.push("b", "B", None)
