"""Numbers of fields in Kubernetes' protobuf messages, for the kinds that clients send as such.

One line per message, `number name type` apart by commas. Types are those of `protobuf.py` and other
messages; `[T]` is a list, `{T}` a map from text. Of a status only the first fields
are here; others are skipped, because nobody creates objects with one.
"""

_TEXT = """
Unknown: 1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding text, 4 contentType text
TypeMeta: 1 apiVersion text, 2 kind text
Time: 1 seconds int, 2 nanos int
IntOrString: 1 type int, 2 intVal int, 3 strVal text
ObjectMeta: 1 name text, 2 generateName text, 3 namespace text, 4 selfLink text, 5 uid text, \
6 resourceVersion text, 7 generation int, 8 creationTimestamp Time, 9 deletionTimestamp Time, \
10 deletionGracePeriodSeconds int, 11 labels {text}, 12 annotations {text}, \
13 ownerReferences [OwnerReference], 14 finalizers [text]
OwnerReference: 1 kind text, 3 name text, 4 uid text, 5 apiVersion text, 6 controller bool, \
7 blockOwnerDeletion bool
LabelSelector: 1 matchLabels {text}, 2 matchExpressions [LabelSelectorRequirement]
LabelSelectorRequirement: 1 key text, 2 operator text, 3 values [text]
DeleteOptions: 1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool, \
4 propagationPolicy text, 5 dryRun [text]
Preconditions: 1 uid text, 2 resourceVersion text
Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
Binding: 1 metadata ObjectMeta, 2 target ObjectReference
ObjectReference: 1 kind text, 2 namespace text, 3 name text, 4 uid text, 5 apiVersion text, \
6 resourceVersion text, 7 fieldPath text
LocalObjectReference: 1 name text
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceSpec: 1 finalizers [text]
NamespaceStatus: 1 phase text
ConfigMap: 1 metadata ObjectMeta, 2 data {text}, 3 binaryData {bytes}, 4 immutable bool
Secret: 1 metadata ObjectMeta, 2 data {bytes}, 3 type text, 4 stringData {text}, 5 immutable bool
ServiceAccount: 1 metadata ObjectMeta, 2 secrets [ObjectReference], \
3 imagePullSecrets [LocalObjectReference], 4 automountServiceAccountToken bool
Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus
ServiceStatus: 1 loadBalancer LoadBalancerStatus
LoadBalancerStatus: 1 ingress [LoadBalancerIngress]
LoadBalancerIngress: 1 ip text, 2 hostname text
ServiceSpec: 1 ports [ServicePort], 2 selector {text}, 3 clusterIP text, 4 type text, \
5 externalIPs [text], 7 sessionAffinity text, 8 loadBalancerIP text, \
9 loadBalancerSourceRanges [text], 10 externalName text, 11 externalTrafficPolicy text, \
12 healthCheckNodePort int, 13 publishNotReadyAddresses bool, 17 ipFamilyPolicy text, \
18 clusterIPs [text], 19 ipFamilies [text], 20 allocateLoadBalancerNodePorts bool, \
21 loadBalancerClass text, 22 internalTrafficPolicy text
ServicePort: 1 name text, 2 protocol text, 3 port int, 4 targetPort IntOrString, 5 nodePort int, \
6 appProtocol text
Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status DeploymentStatus
DeploymentStatus: 1 observedGeneration int, 2 replicas int, 3 updatedReplicas int, \
4 availableReplicas int, 5 unavailableReplicas int, 7 readyReplicas int
DeploymentSpec: 1 replicas int, 2 selector LabelSelector, 3 template PodTemplateSpec, \
4 strategy DeploymentStrategy, 5 minReadySeconds int, 6 revisionHistoryLimit int, 7 paused bool, \
9 progressDeadlineSeconds int
DeploymentStrategy: 1 type text, 2 rollingUpdate RollingUpdate
RollingUpdate: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
Job: 1 metadata ObjectMeta, 2 spec JobSpec, 3 status JobStatus
JobStatus: 4 active int, 5 succeeded int, 6 failed int
JobSpec: 1 parallelism int, 2 completions int, 3 activeDeadlineSeconds int, \
4 selector LabelSelector, 5 manualSelector bool, 6 template PodTemplateSpec, 7 backoffLimit int, \
8 ttlSecondsAfterFinished int, 9 completionMode text, 10 suspend bool
CronJob: 1 metadata ObjectMeta, 2 spec CronJobSpec, 3 status CronJobStatus
CronJobStatus: 1 active [ObjectReference]
CronJobSpec: 1 schedule text, 2 startingDeadlineSeconds int, 3 concurrencyPolicy text, \
4 suspend bool, 5 jobTemplate JobTemplateSpec, 6 successfulJobsHistoryLimit int, \
7 failedJobsHistoryLimit int, 8 timeZone text
JobTemplateSpec: 1 metadata ObjectMeta, 2 spec JobSpec
PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, \
3 status PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector, \
3 maxUnavailable IntOrString, 4 unhealthyPodEvictionPolicy text
PodDisruptionBudgetStatus: 1 observedGeneration int, 3 disruptionsAllowed int, \
4 currentHealthy int, 5 desiredHealthy int, 6 expectedPods int
PriorityClass: 1 metadata ObjectMeta, 2 value int, 3 globalDefault bool, 4 description text, \
5 preemptionPolicy text
ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status ResourceQuotaStatus
ResourceQuotaSpec: 1 hard {Quantity}, 2 scopes [text]
ResourceQuotaStatus: 1 hard {Quantity}, 2 used {Quantity}
Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity text, 2 leaseDurationSeconds int, 3 acquireTime MicroTime, \
4 renewTime MicroTime, 5 leaseTransitions int, 6 strategy text, 7 preferredHolder text
Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodStatus: 1 phase text, 3 message text, 4 reason text
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PodSpec: 1 volumes [Volume], 2 containers [Container], 3 restartPolicy text, \
4 terminationGracePeriodSeconds int, 5 activeDeadlineSeconds int, 6 dnsPolicy text, \
7 nodeSelector {text}, 8 serviceAccountName text, 9 serviceAccount text, 10 nodeName text, \
11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool, 14 securityContext PodSecurityContext, \
15 imagePullSecrets [LocalObjectReference], 16 hostname text, 17 subdomain text, \
19 schedulerName text, 20 initContainers [Container], 21 automountServiceAccountToken bool, \
22 tolerations [Toleration], 24 priorityClassName text, 25 priority int, \
27 shareProcessNamespace bool, 29 runtimeClassName text, 30 enableServiceLinks bool, \
31 preemptionPolicy text, 32 overhead {Quantity}, 38 schedulingGates [PodSchedulingGate]
PodSecurityContext: 2 runAsUser int, 3 runAsNonRoot bool, 5 fsGroup int, 6 runAsGroup int
PodSchedulingGate: 1 name text
Toleration: 1 key text, 2 operator text, 3 value text, 4 effect text, 5 tolerationSeconds int
Volume: 1 name text
Container: 1 name text, 2 image text, 3 command [text], 4 args [text], 5 workingDir text, \
6 ports [ContainerPort], 7 env [EnvVar], 8 resources ResourceRequirements, \
9 volumeMounts [VolumeMount], 13 terminationMessagePath text, 14 imagePullPolicy text, \
16 stdin bool, 17 stdinOnce bool, 18 tty bool, 20 terminationMessagePolicy text
ContainerPort: 1 name text, 2 hostPort int, 3 containerPort int, 4 protocol text, 5 hostIP text
EnvVar: 1 name text, 2 value text
ResourceRequirements: 1 limits {Quantity}, 2 requests {Quantity}
VolumeMount: 1 name text, 2 readOnly bool, 3 mountPath text, 4 subPath text
"""


def _parse() -> dict[str, dict[int, tuple[str, str]]]:
    messages = {}
    for line in _TEXT.strip().splitlines():
        name, _, fields = line.partition(": ")
        messages[name] = {
            int(number): (field, type_)
            for number, field, type_ in (each.split() for each in fields.split(", "))
        }
    return messages


MESSAGES = _parse()

KINDS = {
    name: name
    for name in (
        "Binding",
        "ConfigMap",
        "CronJob",
        "DeleteOptions",
        "Deployment",
        "Eviction",
        "Job",
        "Lease",
        "Namespace",
        "Pod",
        "PodDisruptionBudget",
        "PriorityClass",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    )
}
"""The message of each kind that is read."""
