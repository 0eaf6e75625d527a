module podtrail/instrumentation/tracecontext

go 1.25.0

require (
	go.opentelemetry.io/otel v1.40.0
	go.opentelemetry.io/otel/trace v1.40.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect
