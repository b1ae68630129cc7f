#!/usr/bin/env bash
# What Ringer is measured against: the shell design it replaces. A line of JSON goes to the end of a queue file, then
# a background process writes to a FIFO, and another kills it after a second in case no listener reads.
#
# notify.sh FOLDER FROM TYPE MESSAGE
set -e

folder=$1 sender=$2 kind=$3 message=$4
queue=$folder/queue
doorbell=$folder/signal

mkdir -p "$folder"
moment=$(date +%Y-%m-%dT%H:%M:%S%z)

# Backslashes before what adds backslashes.
message=${message//\\/\\\\}
message=${message//\"/\\\"}
message=${message//$'\n'/\\n}

echo "{\"ts\":\"$moment\",\"from\":\"$sender\",\"type\":\"$kind\",\"msg\":\"$message\"}" >> "$queue"

if [[ -p $doorbell ]]; then
    ( echo > "$doorbell" ) &
    writer=$!
    ( sleep 1 && kill "$writer" 2> /dev/null ) &
    killer=$!
    wait "$writer" 2> /dev/null || true
    kill "$killer" 2> /dev/null || true
    wait "$killer" 2> /dev/null || true
fi
