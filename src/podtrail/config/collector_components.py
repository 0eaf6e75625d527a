"""Components that the OpenTelemetry Collector has and podtrail does not, by name, and what to use instead.

The names are those of the modules that the distributions core, contrib and k8s are built of (`manifest.yaml` of
open-telemetry/opentelemetry-collector-releases, all versions from v0.86 to v0.159), without the kind behind them, and
a few types that are called otherwise. Types have been written with and without `_`, so it does not count.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class CollectorComponent(NamedTuple):
    """A component that the Collector has or had, or another program that is built of it."""

    message: str
    hint: str


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_THERE: Final[Mapping[str, frozenset[str]]] = {
    "receiver": _words(
        """
        activedirectoryds aerospike apache apachespark awscloudwatch awscontainerinsight awsecscontainermetrics
        awsfirehose awslambda awss3 awsxray azureblob azureeventhub azuremonitor carbon chrony ciscoos
        cloudflare cloudfoundry collectd collector couchdb datadog dockerstats elasticsearch envoyals expvar
        faro filelog filestats flinkmetrics fluentforward github gitlab googlecloudmonitoring googlecloudpubsub
        googlecloudspanner haproxy hostmetrics httpcheck icmpcheck iis influxdb jaeger journald k8scluster
        k8sevents k8sobjects kafkametrics kubeletstats libhoney loki macosunifiedlogging memcached mongodb
        mongodbatlas mysql namedpipe netflow nginx nop nsxt ntp obi oracledb otelarrow podman postgresql pprof
        prometheus prometheusremotewrite pulsar purefa purefb rabbitmq receivercreator redis riak saphana
        simpleprometheus skywalking snmp snowflake solace splunkenterprise splunkhec sqlquery sqlserver sshcheck
        statsd stef syslog systemd tcpcheck tcplog tlscheck udplog vcenter wavefront webhookevent
        windowseventlog windowsperfcounters windowsservice yanggrpc zipkin zookeeper
        """
    ),
    "processor": _words(
        """
        cardinalityguardian coralogix cumulativetodelta deltatocumulative deltatorate drain
        experimentalmetricsgeneration genainormalizer geoip groupbyattrs groupbytrace interval isolationforest
        k8sattributes logdedup metricsgeneration metricstarttime metricstransform redaction remotetap
        resourcedetection schema span sumologic transform unroll
        """
    ),
    "exporter": _words(
        """
        alibabacloudlogservice awscloudwatchlogs awsemf awskinesis awss3 awsxray azureblob azuredataexplorer
        azuremonitor bmchelix cassandra clickhouse coralogix datadog dataset doris elasticsearch faro
        googlecloud googlecloudpubsub googlecloudstorage googlemanagedprometheus honeycombmarker influxdb
        logicmonitor logzio mezmo nop opensearch otelarrow prometheus prometheusremotewrite pulsar
        rabbitmq sentry signalfx splunkhec stef sumologic syslog tencentcloudlogservice tinybird zipkin
        """
    ),
    "extension": _words(
        """
        ack asapauth asapclient awscloudwatchmetricstreamsencoding awsiamdbauth awslogsencoding awsproxy
        azureauth azureencoding cgroupruntime datadog dbstorage dockerobserver
        ecsobserver googleclientauth googlecloudlogentryencoding headerssetter healthcheckv2
        hostobserver httpforwarder jaegerencoding jaegerremotesampling jsonlogencoding k8sleaderelector
        k8sobserver oauth2client oauth2clientauth oidc oidcauth opamp otlpencoding pebbletailstorage pprof
        redisstorage sigv4auth skywalkingencoding sumologic textencoding zipkinencoding zpages
        """
    ),
    "connector": _words(
        """
        count datadog exceptions failover forward grafanacloud otlpjson roundrobin routing servicegraph
        signaltometrics spanmetrics sum
        """
    ),
}
"""In the distributions of today, by kind."""
_GONE: Final[Mapping[str, frozenset[str]]] = {
    "receiver": _words(
        """
        bigip dotnetdiagnostics file jmx opencensus prometheusexec sapm signalfx
        """
    ),
    "processor": _words(
        """
        datadog k8stagger remoteobserver routing servicegraph spanmetrics
        """
    ),
    "exporter": _words(
        """
        awsprometheusremotewrite carbon dynatrace elastic f5cloud honeycomb humio instana jaeger
        jaegerthrifthttp logging loki newrelic opencensus parquet sapm skywalking stackdriver tanzuobservability
        """
    ),
    "extension": _words(
        """
        ecstaskobserver fluentbit kafkatopicsobserver memoryballast
        """
    ),
}
"""In earlier ones."""

_OF_OTHERS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "Jaeger": {
        "processor": _words("adaptivesampling"),
        "exporter": _words("jaegerstorageexporter"),
        "extension": _words("expvar jaegermcp jaegerquery jaegerstorage remotesampling remotestorage storagecleaner"),
    },
    "SigNoz": {
        "receiver": _words("clickhousesystemtablesreceiver httplogreceiver signozawsfirehose"),
        "processor": _words("signozlogspipeline signozspanmetrics signoztailsampling signoztransform"),
        "exporter": _words(
            """
            clickhouselogsexporter clickhousemetricswrite clickhousemetricswritev2 clickhousetraces metadataexporter
            signozclickhousemeter signozclickhousemetrics
            """
        ),
        "extension": _words("signozhealthcheck"),
    },
    "Splunk's distribution": {
        "receiver": _words("lightprometheus scriptedinputs signalfxgatewayprometheusremotewrite smartagent"),
        "processor": _words("timestamp"),
        "extension": _words("smartagent"),
    },
    "Sumo Logic's distribution": {
        "receiver": _words("rawk8sevents telegraf"),
        "processor": _words("cascadingfilter source sumologicschema sumologicsyslog"),
    },
    "Elastic's distribution": {
        "processor": _words("elasticinframetrics elastictrace"),
        "extension": _words("apmconfig"),
    },
    "Datadog's distribution": {
        "processor": _words("infraattributes"),
        "extension": _words("ddflare ddprofiling"),
    },
    "Honeycomb's distribution": {"processor": _words("usage"), "extension": _words("honeycomb")},
}
"""What other programs add to the Collector that they are built of, by kind."""

_INSTEAD: Final[Mapping[str, str]] = {
    "receiver": "let a Collector take it in and send OTLP to podtrail",
    "processor": "let a Collector do it: in front of podtrail where policies need what it sets, else behind",
    "exporter": "send OTLP to a Collector that has it",
    "extension": "remove it here and from service::extensions",
    "connector": "remove it and the pipelines that it feeds; a Collector can have it: in front of podtrail for all "
    "spans, behind for those kept",
}
_BETTER: Final[Mapping[tuple[str, str], str]] = {
    ("exporter", "jaeger"): "Jaeger takes OTLP: use otlp_grpc",
    ("exporter", "logging"): "debug took its place: its verbosity is basic, normal or detailed",
    ("exporter", "nop"): "leave it out, or use debug with verbosity: basic",
    **dict.fromkeys(
        (("extension", "dbstorage"), ("extension", "redisstorage")), "use file_storage: what is kept is kept in files"
    ),
    **dict.fromkeys((("processor", "cascadingfilter"), ("processor", "signoztailsampling")), "use tail_sampling"),
    **dict.fromkeys((("extension", "healthcheckv2"), ("extension", "signozhealthcheck")), "use health_check"),
    ("extension", "pebbletailstorage"): "use file_storage, and tail_sampling::storage or a pipeline's durable",
    ("extension", "memoryballast"): "remove it: Python has no use for a ballast",
    ("extension", "zpages"): "use viewer, whose pages show traces and decisions",
    ("processor", "groupbytrace"): "leave it out: tail_sampling gathers traces itself",
    **dict.fromkeys(
        (("processor", "k8sattributes"), ("processor", "resourcedetection")),
        "let a Collector do it in front of podtrail, where it sees who sends and policies can use what it adds",
    ),
    **dict.fromkeys(
        (("processor", "span"), ("processor", "transform")),
        "attributes, resource and filter do some of it; let a Collector do the rest: in front of podtrail where "
        "policies need what it sets, else behind",
    ),
    ("receiver", "jaeger"): "have its clients send OTLP, or let a Collector take it in and send OTLP to podtrail",
    ("receiver", "zipkin"): "have its clients send OTLP, or let a Collector take it in and send OTLP to podtrail",
}


_NO_USE: Final = frozenset({"memoryballast", "pprof", "zpages"})
"""Extensions without which everything works: they are accepted, with a warning."""


def is_harmless(kind: str, type_name: str) -> bool:
    """Tell whether a component of the Collector's can be left out without a change for spans or probes."""
    return kind == "extension" and type_name.replace("_", "").lower() in _NO_USE


def collector_component(kind: str, type_name: str) -> CollectorComponent | None:
    """Return what is to be said of a type that podtrail does not have; None when the Collector has none either."""
    name = type_name.replace("_", "").lower()
    hint = _BETTER.get((kind, name), _INSTEAD[kind])
    if name in _THERE[kind]:
        return CollectorComponent(f"the Collector has the {kind} {type_name!r}, podtrail does not", hint)
    if name in _GONE.get(kind, ()):
        return CollectorComponent(f"the Collector had the {kind} {type_name!r} once, podtrail does not have it", hint)
    for program, kinds in _OF_OTHERS.items():
        if name in kinds.get(kind, ()):
            if kind == "exporter":
                hint = f"send OTLP to {program}: use otlp_grpc or otlp_http"
            return CollectorComponent(f"{program} has the {kind} {type_name!r}, podtrail does not", hint)
    return None


def not_here(kind: str) -> Sequence[str]:
    """Return the names of the components that the Collector has today, without `_`."""
    return sorted(_THERE[kind])
