#!/bin/sh
# Records which backends contrib's loadbalancingexporter v0.161.0 chooses: ../choices.json.gz. Needs go.
# What chooses is not exported: its source is taken from the module and built into a program of its own.
set -eu
cd "$(dirname "$0")"
module=$(go mod download -json github.com/open-telemetry/opentelemetry-collector-contrib/exporter/loadbalancingexporter@v0.161.0 |
  sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp main.go go.mod "$build"
for file in consistent_hashing.go attribute_routing.go; do
  sed 's/^package .*/package main/' "$module/$file" > "$build/$file"
done
{
  printf 'package main\n\nimport (\n\t"errors"\n\t"fmt"\n\t"strings"\n\n\t"go.opentelemetry.io/collector/pdata/ptrace"\n)\n\n'
  sed -n -e '/^type routingKey int/,/^)/p' "$module/config.go"
  sed -n -e '/^const (/,/^)/p' -e '/^func routingIdentifiersFromTraces/,/^}/p' "$module/trace_exporter.go"
} > "$build/routing.go"
(cd "$build" && go mod tidy && go run .) | gzip -9n > ../choices.json.gz
