module recorder

go 1.26.0

require go.opentelemetry.io/collector/pdata v1.67.0
