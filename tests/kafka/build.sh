#!/usr/bin/env bash
# Gathers what broker.py starts: Kafka's jars, which Maven fetches (40 MB), and what a broker finds in its folder of data
# when it starts for the first time.
#   build.sh [folder]     default: ~/.cache/podtrail/kafka-4.1.1, where the tests look
# What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' pom.xml)
for command in java mvn; do
  command -v $command >/dev/null || { echo "kafka: needs $command (Java 17 or newer, and Maven)" >&2; exit 1; }
done

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/kafka-$version}
if [ -e "$folder/bootstrap.checkpoint" ]; then exit 0; fi
mkdir -p "$(dirname "$folder")"
part=$(mktemp -d "$folder.XXXXXX") # what is gathered is moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT

started=$SECONDS
echo "kafka: fetching the jars of $version" >&2
mvn -q -B -f pom.xml dependency:copy-dependencies "-DoutputDirectory=$part/jars" >&2
# Formatting takes a JVM of its own: once, here; the tests copy what it leaves.
cat >"$part/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=$part/data
PROPERTIES
java -cp "$part/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$part/server.properties" >"$part/format.log" 2>&1 ||
  { cat "$part/format.log" >&2; exit 1; }
mv "$part/data/bootstrap.checkpoint" "$part/bootstrap.checkpoint"
rm -rf "$part/data" "$part/server.properties" "$part/format.log"
chmod 755 "$part"
rm -rf "$folder"
mv "$part" "$folder"
echo "kafka: $version took $((SECONDS - started)) s" >&2
