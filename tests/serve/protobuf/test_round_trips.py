"""Every kind that is served: an object that is encoded and decoded is the same object."""

import base64
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.schema import messages
from moorage.cluster.resources import BUILT_IN
from moorage.serve.protobuf import envelope

WITHOUT_PROTOBUF = {"Queue", "ElasticQuota"}  # served as if a definition had added them
KINDS = [row for row in BUILT_IN if row.kind not in WITHOUT_PROTOBUF]
MAX_DEPTH = 6
ZEROS = {"string": "", "int32": 0, "int64": 0, "bool": False}


class ObjectMaker:
    """Random objects from a seed; drawing each field from Hypothesis is a hundred times slower."""

    def __init__(self, seed):
        self.random = Random(seed)

    def message(self, name, depth=0):
        found = {}
        for field in messages.message(name).fields:
            if self.random.random() < (0.6 if depth < 2 else 0.2):
                if field.is_inline:
                    found.update(self.message(field.type, depth))
                elif field.type in messages.SCALARS + messages.SPECIAL or depth < MAX_DEPTH:
                    found[field.name] = self.field(field, depth)
        return found

    def field(self, field, depth):
        count = self.random.randint(1, 2)
        if field.is_list:
            return [self.value(field, depth) for _ in range(count)]
        if field.is_map:
            return {self.text(): self.value(field, depth) for _ in range(count)}
        return self.value(field, depth)

    def value(self, field, depth):
        """A value of a field; zero only where it differs from absent."""
        zero = field.is_pointer or field.is_kept or field.is_list or field.is_map
        if zero and field.type in ZEROS and self.random.random() < 0.3:
            return ZEROS[field.type]
        if field.type in messages.table():
            return self.message(field.type, depth + 1)
        return getattr(self, field.type.lower())()

    def text(self):
        return "".join(self.random.choices("ab-/.0é\u4e2d", k=self.random.choice((1, 3, 200))))

    string = text

    def int32(self):
        return self.random.choice((1, 127, 128, 5000, 2**31 - 1, -1, -(2**31)))

    def int64(self):
        return self.random.choice((1, 4096, 2**63 - 1, -1, -(2**63)))

    def bool(self):
        return True

    def bytes(self):
        return base64.b64encode(self.random.randbytes(5)).decode()

    def double(self):
        return self.random.choice((1, -2, 0.5, 1e300))

    def time(self):
        return self._moment().strftime("%Y-%m-%dT%H:%M:%SZ")

    def microtime(self):
        moment = self._moment() + timedelta(microseconds=self.random.randrange(10**6))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _moment(self):
        return datetime(1900, 1, 1, tzinfo=UTC) + timedelta(seconds=self.random.randrange(10**10))

    def quantity(self):
        return self.random.choice(("0", "1", "500m", "1Gi", "1e3", "-1"))

    def intorstring(self):
        return self.random.choice((0, 1, 70_000, -1, "http", "50%", ""))

    def raw(self):
        return self.random.choice(({}, {"a": [1, {"b": None}]}, "text", 5, False, [], 1.5))

    def strings(self):
        return [self.text() for _ in range(self.random.randrange(3))]

    def schema(self):
        return {"type": self.text(), "properties": {"a": {"maximum": self.double()}}}

    def orarray(self):
        return self.random.choice((self.schema(), [self.schema(), self.schema()]))

    def orbool(self):
        return self.random.choice((self.schema(), True, False))

    def orstringarray(self):
        return self.random.choice((self.schema(), [self.text()]))


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row.key)
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 2**32))
def test_round_trip(row, seed):
    made = ObjectMaker(seed).message(messages.message_of(row.api_version, row.kind).name)
    obj = {"apiVersion": row.api_version, "kind": row.kind, **made}
    assert envelope.decode(envelope.encode(obj)) == obj


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("", id="an empty text"),
        pytest.param(0, id="zero"),
        pytest.param("http", id="a name"),
    ],
)
def test_target_port_that_is_empty_is_not_absent(target):
    """As in JSON from Go, which omits no IntOrString. Defaults replace both by the port later."""
    spec = {"ports": [{"port": 80, "targetPort": target}]}
    obj = {"apiVersion": "v1", "kind": "Service", "spec": spec}
    assert envelope.decode(envelope.encode(obj)) == obj


def test_every_kind_has_a_message():
    missing = {row.kind for row in BUILT_IN if not messages.message_of(row.api_version, row.kind)}
    assert missing == WITHOUT_PROTOBUF
