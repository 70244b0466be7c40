"""Services and controllers of pods: topology spreading derives its default selector from them."""

from moorage.api.meta import Data, Int32, KubeObject, LabelSelector


class ServiceSpec(Data):
    selector: dict[str, str] | None = None


class Service(KubeObject):
    """A service; None as selector selects nothing."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Data):
    selector: dict[str, str] | None = None
    replicas: Int32 | None = None


class ReplicationController(KubeObject):
    """A replication controller."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectedSpec(Data):
    selector: LabelSelector | None = None
    replicas: Int32 | None = None


class ReplicaSet(KubeObject):
    """A replica set."""

    spec: SelectedSpec = SelectedSpec()


class StatefulSet(KubeObject):
    """A stateful set."""

    spec: SelectedSpec = SelectedSpec()
