#!/usr/bin/env bash
# The other half of notify.sh: print what is queued; if nothing is, sleep on the FIFO first. The queue is renamed before it
# is printed, so that writers begin a new one, and the FIFO is removed for the next listener to make.
#
# listen.sh FOLDER SECONDS
set -e

folder=$1 seconds=$2
queue=$folder/queue
doorbell=$folder/signal
owner=$folder/listener.pid

drain() {
    local drained=$folder/queue.drain.$$
    mv "$queue" "$drained" 2> /dev/null || true
    if [[ -s $drained ]]; then
        cat "$drained"
        rm -f "$drained"
    fi
    rm -f "$doorbell"
}

mkdir -p "$folder"
[[ -p $doorbell ]] || mkfifo "$doorbell"
echo $$ > "$owner"
trap 'rm -f "$owner"' EXIT

if [[ ! -s $queue ]]; then
    # Open for reading and writing: it is never at its end while there is no writer.
    read -r -t "$seconds" _ <> "$doorbell" || true
fi
if [[ -s $queue ]]; then
    drain
fi
