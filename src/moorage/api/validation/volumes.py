"""Volumes of pods, persistent volumes and their claims, storage classes, CSI objects."""

import posixpath

from moorage.api import labels
from moorage.api.validation import amounts, containers, names, placement
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields
from moorage.api.validation.names import each_problem

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_ONE_TYPE = "may not specify more than 1 volume type"
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
# The sources in the order in which an API server looks at them, with their required texts.
_SOURCES: dict[str, tuple[str, ...]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("image",),
    "cinder": ("volumeID",),
    "cephfs": (),
    "quobyte": ("registry", "volume"),
    "downwardAPI": (),
    "fc": (),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": (),
    "projected": (),
    "scaleIO": ("gateway", "system", "volumeName"),
    "csi": ("driver",),
    "ephemeral": (),
    "image": (),
}
_PERSISTENT_SOURCES: dict[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    **{
        name: _SOURCES[name]
        for name in (
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "glusterfs",
            "flocker",
            "nfs",
            "rbd",
            "quobyte",
            "cephfs",
            "iscsi",
            "cinder",
            "fc",
            "flexVolume",
            "azureFile",
            "vsphereVolume",
            "photonPersistentDisk",
            "portworxVolume",
            "azureDisk",
            "scaleIO",
        )
    },
    "local": ("path",),
    "storageos": (),
    "csi": ("driver", "volumeHandle"),
}


def pod_volumes(listed: list[Fields], path: str) -> tuple[dict[str, Fields], list[fe.FieldError]]:
    """The valid volumes of a pod by name, and the errors of the others."""
    found: dict[str, Fields] = {}
    errors: list[fe.FieldError] = []
    for i, volume in enumerate(listed):
        item, name = f"{path}[{i}]", fe.text(volume, "name")
        own = [*_volume_source(volume, item), *names.named(names.label_problems, volume, item)]
        if name in found:
            own.append(fe.duplicate(f"{item}.name", name))
        if own:
            errors += own
        else:
            found[name] = volume
    return found, errors


def _volume_source(volume: Fields, path: str) -> FieldErrors:
    # A volume without a source is an empty directory.
    given = [name for name in _SOURCES if fe.is_set(volume, name)]
    for name in given[1:]:
        yield fe.forbidden(f"{path}.{name}", _ONE_TYPE)
    if not given:
        return
    name = given[0]
    source, here = fe.mapping(volume, name), f"{path}.{name}"
    yield from fe.needed(source, here, *_SOURCES[name])
    match name:
        case "emptyDir":
            size = amounts.nano(source.get("sizeLimit"))
            if size is not None and size < 0:
                rule = "SizeLimit field must be a valid resource quantity"
                yield fe.forbidden(f"{here}.sizeLimit", rule)
        case "hostPath":
            yield from _host_path(source, here)
        case "secret" | "configMap":
            yield from _files(source, here)
        case "downwardAPI":
            yield from _mode(source, here, "defaultMode")
            for file in fe.items(source, "items"):
                # An API server names the items by the path of their volume.
                yield from fe.needed(file, here, "path")
                yield from containers.relative_path(fe.text(file, "path"), f"{here}.path")
        case "projected":
            yield from _projected(source, here)
        case "ephemeral":
            yield from _ephemeral(source, here)


def _host_path(source: Fields, path: str) -> FieldErrors:
    if ".." in fe.text(source, "path").split("/"):
        yield fe.invalid(f"{path}.path", fe.text(source, "path"), "must not contain '..'")
    kind = fe.text(source, "type")
    if kind not in _HOST_PATH_TYPES:
        yield fe.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _mode(source: Fields, path: str, field: str) -> FieldErrors:
    mode = fe.number(source, field)
    if mode is not None and not 0 <= mode <= 0o777:
        yield fe.invalid(f"{path}.{field}", mode, _MODE_RULE)


def _files(source: Fields, path: str) -> FieldErrors:
    yield from _mode(source, path, "defaultMode")
    for i, file in enumerate(fe.items(source, "items")):
        item = f"{path}.items[{i}]"
        yield from fe.needed(file, item, "key", "path")
        yield from containers.relative_path(fe.text(file, "path"), f"{item}.path")
        yield from _mode(file, item, "mode")


def _projected(source: Fields, path: str) -> FieldErrors:
    yield from _mode(source, path, "defaultMode")
    seen: set[str] = set()
    for i, each in enumerate(fe.items(source, "sources")):
        for kind in ("secret", "configMap"):
            projection = fe.optional(each, kind)
            if projection is None:
                continue
            here = f"{path}.sources[{i}].{kind}"
            yield from fe.needed(projection, here, "name")
            yield from _files(projection, here)
            for file in fe.items(projection, "items"):
                at = fe.text(file, "path")
                if at and at in seen:
                    name = fe.text(projection, "name")
                    yield fe.invalid(path, name, "conflicting duplicate paths")
                seen.add(at)


def _ephemeral(source: Fields, path: str) -> FieldErrors:
    template = fe.optional(source, "volumeClaimTemplate")
    here = f"{path}.volumeClaimTemplate"
    if template is None:
        yield fe.required(here)
    else:
        yield from claim_spec(fe.mapping(template, "spec"), f"{here}.spec")


# Claims and persistent volumes


def validate_claim(claim: Fields) -> FieldErrors:
    """A PersistentVolumeClaim."""
    return claim_spec(fe.mapping(claim, "spec"), "spec")


def claim_spec(spec: Fields, path: str) -> FieldErrors:
    """The spec of a claim, or of the template of one."""
    if not fe.texts(spec, "accessModes"):
        yield fe.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from names.label_selector(fe.optional(spec, "selector"), f"{path}.selector")
    yield from _access_modes(spec, path)
    size = fe.mapping(fe.mapping(spec, "resources"), "requests").get("storage")
    if size is None:
        yield fe.required(f"{path}.resources[storage]")
    else:
        yield from amounts.positive(size, f"{path}.resources[storage]")
    for field in ("storageClassName", "volumeAttributesClassName"):
        if value := fe.text(spec, field):
            yield from each_problem(labels.subdomain_problems, value, f"{path}.{field}")
    yield from fe.one_of(spec, path, "volumeMode", VOLUME_MODES)


def _access_modes(spec: Fields, path: str) -> FieldErrors:
    modes = fe.texts(spec, "accessModes")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield fe.not_supported(f"{path}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(
        mode in ACCESS_MODES for mode in modes if mode != "ReadWriteOncePod"
    ):
        rule = "may not use ReadWriteOncePod with other access modes"
        yield fe.forbidden(f"{path}.accessModes", rule)


def validate_volume(volume: Fields) -> FieldErrors:
    """A PersistentVolume."""
    spec, path = fe.mapping(volume, "spec"), "spec"
    if not fe.texts(spec, "accessModes"):
        yield fe.required("spec.accessModes")
    yield from _access_modes(spec, path)
    capacity = fe.mapping(spec, "capacity")
    if not capacity:
        yield fe.required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield fe.not_supported("spec.capacity", dict(capacity) or None, ("storage",))
    for name, size in capacity.items():
        yield from amounts.positive(size, f"spec.capacity[{name}]")
    yield from fe.one_of(spec, path, "persistentVolumeReclaimPolicy", RECLAIM_POLICIES)
    affinity = fe.optional(spec, "nodeAffinity")
    required = fe.optional(affinity or {}, "required")
    if required is not None:
        yield from placement.node_selector(required, "spec.nodeAffinity.required")
    elif affinity is not None:
        rule = "must specify required node constraints"
        yield fe.required("spec.nodeAffinity.required", rule)
    yield from _persistent_source(spec, path, has_affinity=required is not None)
    if value := fe.text(spec, "storageClassName"):
        yield from each_problem(labels.subdomain_problems, value, "spec.storageClassName")
    yield from fe.one_of(spec, path, "volumeMode", VOLUME_MODES)


def _persistent_source(spec: Fields, path: str, *, has_affinity: bool) -> FieldErrors:
    given = [name for name in _PERSISTENT_SOURCES if fe.is_set(spec, name)]
    for name in given[1:]:
        yield fe.forbidden(f"{path}.{name}", _ONE_TYPE)
    if not given:
        yield fe.required(path, "must specify a volume type")
        return
    name = given[0]
    source = fe.mapping(spec, name)
    yield from fe.needed(source, f"{path}.{name}", *_PERSISTENT_SOURCES[name])
    if name == "hostPath":
        yield from _host_path(source, f"{path}.{name}")
        root = posixpath.normpath(fe.text(source, "path") or ".") == "/"
        if root and fe.text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
            rule = "may not be 'recycle' for a hostPath mount of '/'"
            yield fe.forbidden(f"{path}.persistentVolumeReclaimPolicy", rule)
    if name == "local" and not has_affinity:
        yield fe.required(f"{path}.nodeAffinity", "Local volume requires node affinity")


# Classes and CSI


def validate_storage_class(storage_class: Fields) -> FieldErrors:
    """A StorageClass."""
    provisioner = fe.text(storage_class, "provisioner")
    if provisioner:
        yield from _lower_qualified(provisioner, "provisioner")
    else:
        yield fe.required("provisioner")
    if "" in fe.mapping(storage_class, "parameters"):
        yield fe.invalid("parameters", "", "field can not be empty.")
    yield from fe.one_of(storage_class, "", "reclaimPolicy", ("Delete", "Retain"))
    yield from fe.one_of(storage_class, "", "volumeBindingMode", BINDING_MODES)
    for i, term in enumerate(fe.items(storage_class, "allowedTopologies")):
        for j, each in enumerate(fe.items(term, "matchLabelExpressions")):
            yield from _topology(each, f"allowedTopologies[{i}].matchLabelExpressions[{j}]")


def _lower_qualified(name: str, path: str) -> FieldErrors:
    for problem in labels.key_problems(name.lower()):
        yield fe.invalid(path, name, problem)


def _topology(requirement: Fields, path: str) -> FieldErrors:
    values = fe.texts(requirement, "values")
    if not values:
        yield fe.required(f"{path}.values")
    for i, value in enumerate(values):
        if value in values[:i]:
            yield fe.duplicate(f"{path}.values[{i}]", value)
    yield from each_problem(labels.key_problems, fe.text(requirement, "key"), f"{path}.key")


def validate_csi_driver(driver: Fields) -> FieldErrors:
    """A CSIDriver."""
    spec = fe.mapping(driver, "spec")
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    yield from fe.one_of(spec, "spec", "fsGroupPolicy", policies)
    modes = ("Persistent", "Ephemeral")
    for mode in fe.texts(spec, "volumeLifecycleModes"):
        if mode not in modes:
            yield fe.not_supported("spec.volumeLifecycleModes", mode, modes)


def validate_csi_node(node: Fields) -> FieldErrors:
    """A CSINode."""
    seen: set[str] = set()
    for i, driver in enumerate(fe.items(fe.mapping(node, "spec"), "drivers")):
        path, name = f"spec.drivers[{i}]", fe.text(driver, "name")
        yield from fe.needed(driver, path, "name", "nodeID")
        allocatable = fe.mapping(driver, "allocatable")
        yield from fe.not_negative(allocatable, f"{path}.allocatable", "count")
        if name in seen:
            yield fe.duplicate(f"{path}.name", name)
        seen.add(name)


def validate_capacity(capacity: Fields) -> FieldErrors:
    """A CSIStorageCapacity."""
    name = fe.text(capacity, "storageClassName")
    yield from each_problem(labels.subdomain_problems, name, "storageClassName")
    for field in ("capacity", "maximumVolumeSize"):
        yield from amounts.amount(field, capacity.get(field), "", field)
    yield from names.label_selector(fe.optional(capacity, "nodeTopology"), "nodeTopology")


def validate_attachment(attachment: Fields) -> FieldErrors:
    """A VolumeAttachment."""
    spec = fe.mapping(attachment, "spec")
    yield from fe.needed(spec, "spec", "attacher")
    source = fe.mapping(spec, "source")
    if fe.is_set(source, "inlineVolumeSpec") == bool(fe.text(source, "persistentVolumeName")):
        rule = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        yield fe.required("spec.source", rule)
    yield from each_problem(labels.subdomain_problems, fe.text(spec, "nodeName"), "spec.nodeName")
