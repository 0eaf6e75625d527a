#!/usr/bin/env bash
# Gathers what broker.py starts: Kafka's jars, which Maven fetches (40 MB), what a broker finds in its folder of data when it
# starts for the first time, and an archive of its classes, which halves the CPU time of a start.
#   build.sh [folder]     default: ${XDG_CACHE_HOME:-~/.cache}/podtrail/kafka-4.1.1, where the tests look
# What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' pom.xml)
for command in java mvn; do
  command -v $command >/dev/null || { echo "kafka: needs $command (Java 17 or newer, and Maven)" >&2; exit 1; }
done

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podtrail/kafka-$version}
mkdir -p "$(dirname "$folder")"
folder=$(realpath -m "$folder")
part=$(mktemp -d "$folder.XXXXXX") # what is gathered is moved whole or not at all, also when this is interrupted
trap 'rm -rf "$part"' EXIT
chmod 755 "$part"

cat >"$part/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=$part/data
PROPERTIES

gather() {
  local started=$SECONDS
  echo "kafka: fetching the jars of $version" >&2
  mvn -q -B -f pom.xml dependency:copy-dependencies "-DoutputDirectory=$part/kafka/jars" >&2
  # Formatting takes a JVM of its own: once, here; the tests copy the result.
  java -cp "$part/kafka/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$part/server.properties" \
    >"$part/format.log" 2>&1 || { cat "$part/format.log" >&2; exit 1; }
  mv "$part/data/bootstrap.checkpoint" "$part/kafka/bootstrap.checkpoint"
  rm -rf "$folder" "$part/data"
  mv "$part/kafka" "$folder"
  echo "kafka: $version took $((SECONDS - started)) s" >&2
}

# The archive is of these jars at this place and of this Java; with others a broker starts without it. A broker has to run and
# end for it, on a port of the controller's that is free.
archive_classes() {
  local port=$((20000 + RANDOM % 10000))
  mkdir -p "$part/data"
  cp "$folder/bootstrap.checkpoint" "$part/data"
  printf '%s\n' version=1 cluster.id=AAAAAAAAAAAAAAAAAAAAAQ node.id=1 directory.id=cG9kdHJhaWwgYXJjaGl2ZQ \
    >"$part/data/meta.properties"
  sed -i "s/:9093/:$port/" "$part/server.properties"
  java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-XX:ArchiveClassesAtExit=$part/classes.jsa" -cp "$folder/jars/*" \
    kafka.Kafka "$part/server.properties" >"$part/broker.log" 2>&1 &
  until grep -q "Kafka Server started" "$part/broker.log"; do
    kill -0 $! 2>/dev/null || { tail -n 20 "$part/broker.log"; echo "kafka: without an archive of classes"; return; } >&2
    sleep 0.2
  done
  kill $!
  wait $! || true
  mv "$part/classes.jsa" "$folder/classes.jsa"
}

[ -e "$folder/bootstrap.checkpoint" ] || gather
[ -e "$folder/classes.jsa" ] || archive_classes
