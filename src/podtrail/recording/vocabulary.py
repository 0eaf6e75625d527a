"""Words and keys that tell nothing about whose cluster it is: what anonymizing leaves as it stands.

Words are those of kube-scheduler's, the API server's and etcd's own messages and span names, of the default plugins and
of protocols. Who names a Pod or node by one of them alone finds that name in messages again, and only there.
"""

from typing import Final

_WORDS: Final = """
a abort aborted about above accept access add added admission affinity after all allocatable already an and
annotation annotations anti-affinity any api apis apiserver application apply apps are aren as assume at attach
attempt attempts audit authentication authorization available backoff bad bandwidth batch batch.v1 be because been
before being below between bind binding bindingcycle binds body bound by bytes call called can cancelled cannot
cause change changed check claim claims class client cluster clusterrole clusterrolebinding clusterrolebindings
clusterroles code completed component-base computing condition conditions configmap configmaps conflict connect
connection constrainedimpersonation constraint constraints container containers context contrib control controller
conversion convert coordination.k8s.io core core.node core.pod coscheduling count cpu create created cronjob
cronjobs csinode csinodes cycle daemonset daemonsets data database deadline decision decode decoded
default-scheduler defaultbinder defaultpreemption delete deletecollection deleted denied deployment deployments did
didn disk disk-pressure do does doesn done drain duration dynamicresources either eligible encode encoded ended
endpoints endpointslice enough ephemeral-storage ephemeralcontainers error etcd etcd3 etcdserver etcdserverpb.kv
etcdserverpb.lease etcdserverpb.maintenance etcdserverpb.watch event events.k8s.io evict evicted eviction exceed
exceeded exec exist existing exists expected expired extender fail failed failing failure false feasible feature
field filter filtering filterlatency filters finalizers find finished fit for forbidden found free from full
gangscheduling gate gated gates gc get go go.etcd.io go.opentelemetry.io goal google.golang.org gpu group groups
grpc guaranteedupdate had handler has have having head health helpful host hostname http https hugepages id if
ignored image imagelocality immediate in inactive incoming inf informer initial instrumentation insufficient
inter-pod-affinity internal interpodaffinity invalid is isn it its job jobs json k8s.io k8s.op key keys kind
kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet kv label labels lacks large latency leader
lease lease_grant leasegrant leases limit limitedreadbody limits list local lock log longer lookup made many match
matched matching max maximum memory memory-pressure message method min minimum minions mismatch missing mode more
must mutating name names namespace namespaces need net network network-unavailable new no node node.kubernetes.io
nodeaffinity nodeclaim nodedeclaredfeatures nodename nodeports noderesourcesbalancedallocation noderesourcesfit
nodes nodeunschedulable nodevolumelimits nominated nominatednodename none normal not not-ready nothing number
nvidia.com object objects of on one only open openapi operation options or original otelgrpc otelhttp other out
out-of-service over own parallel patch patches pdb pdbs pending permit persistentvolume persistentvolumeclaim
persistentvolumeclaims persistentvolumes pid-pressure pkg placement plugin plugins pod pods podtopologyspread
podtrail_scheduler policy policy.v1 port ports possible post postbind postfilter potential prebind predicate
predicates preempted preempting preemption preemptionpolicy prefer prefilter prepared prescore priority
priorityandfairness prioritysort process proposal proto protobuf provided put put_request queuesort quota raft range
rbac.authorization.k8s.io read ready reason receive recorded refused registry rejected relevant remaining replicaset
replicasets request requested requests require required requirement reserve resource resources responding response
restored result retry rolebinding rolebindings root rpc rule rules run running s satisfy scale schedule scheduled
schedulepod scheduler schedulername scheduling scheduling.k8s.io schedulingcycle schedulinggates score scoring
second seconds secret secrets selector send serializeobject server service serviceaccount set should size skew skip
small some space spec spread start started starting state statefulset statefulsets status step storage
storage.k8s.io storageclass storageclasses store stored string succeeded success sync t taint taints tainttoleration
taking terminating than that the them there these they this time timed timeout to tolerate tolerated tolerates
toleration tolerations too topology topologykey trace tracing traffic transaction transformtostorage trigger true
try trying txn type unable unavailable unbound under unknown unreachable unreserve unresolvable unresponsive
unschedulable unschedulableandunresolvable until untolerated update updated upgrade use used user using v1 v1alpha1
v1beta1 v2 valid validating validatingadmissionpolicy value version victim victims vnd.kubernetes.protobuf volume
volumeattachment volumebinding volumerestrictions volumes volumezone wait waiting was wasn watch watcher webhook
webhooks were when where which while will with within without won write writing wrong yet zone
"""
_KEPT: Final = """
http.flavor http.method http.request.body.size http.request.method http.request_content_length
http.response.body.size http.response.status_code http.response_content_length http.scheme http.status_code
network.protocol.name network.protocol.version network.transport otel.status_code podtrail.attempt.number
podtrail.inferred podtrail.link.resolved podtrail.link.source podtrail.link.trusted podtrail.link.type
rpc.grpc.status_code rpc.response.status_code rpc.system rpc.system.name scheduler.attempt scheduler.attempts
scheduler.duration_ns scheduler.nodes.count scheduler.nodes.evaluated scheduler.nodes.feasible
scheduler.nodes.names_cut scheduler.nodes.rejected scheduler.nodes.total scheduler.phase
scheduler.plugin.extension_point scheduler.plugin.name scheduler.plugin.status scheduler.plugins.skipped
scheduler.queue_wait_ms scheduler.result scheduler.victims.count span.kind telemetry.sdk.language telemetry.sdk.name
telemetry.sdk.version url.scheme
"""
_IN_WORDS: Final = """
api-group api-version compare_first_key error error.type exception.message exception.stacktrace exception.type group
http.route http.target http.url k8s.object.kind len limit mediaType method otel.status_description peer.service
protocol range_begin range_end resource rpc.method rpc.service scheduler.message scheduler.profile scheduler.reason
scope service.name size subresource success_first_key success_first_type ttl type url url.full url.path url.template
verb
"""

WORDS: Final = frozenset(_WORDS.split())
"""In lower case."""
KEPT: Final = frozenset(_KEPT.split())
"""Attributes whose values stay as they are."""
IN_WORDS: Final = frozenset(_IN_WORDS.split())
"""Attributes in whose values the words above and small numbers stay, as they do in names and messages."""
