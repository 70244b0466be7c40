"""The table of fields."""

from moorage.api.schema import messages


def test_types_of_all_fields_are_known():
    known = {*messages.SCALARS, *messages.SPECIAL, *messages.table()}
    types = {field.type for each in messages.table().values() for field in each.fields}
    assert types - known == set()


def test_numbers_and_names_of_a_message_are_unique():
    for each in messages.table().values():
        assert len({field.number for field in each.fields}) == len(each.fields), each.name
        assert len({field.name for field in each.fields}) == len(each.fields), each.name


def test_field_with_rules():
    ports = {field.name: field for field in messages.message("v1.Container").fields}["ports"]
    assert ports.is_list
    assert ports.type == "v1.ContainerPort"
    assert ports.list_keys == ("containerPort", "protocol")
    assert (ports.patch_strategy, ports.patch_key) == (("merge",), "containerPort")


def test_kinds_without_a_version_of_their_own():
    assert messages.message_of("policy/v1", "DeleteOptions").name == "meta.k8s.io/v1.DeleteOptions"
    assert messages.message_of("example.com/v1", "Queue") is None
