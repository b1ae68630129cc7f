#!/usr/bin/env python3
"""A host for Ringer: says which surfaces there are and what the person looks at, and draws rings as text.

Usage: host.py SURFACE...       each line on standard input is the surface that is looked at, or empty for none
"""
import json
import os
import socket
import sys
import threading
from pathlib import Path


def home():
    if "RINGER_HOME" in os.environ:
        return Path(os.environ["RINGER_HOME"])
    return Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local/state")) / "ringer"


def connect():
    path = json.loads((home() / "hub.json").read_text())["socket"]
    # Only a socket of one's own may be trusted.
    if os.stat(path).st_uid != os.geteuid():
        sys.exit(f"{path} belongs to another user")
    hub = socket.socket(socket.AF_UNIX)
    hub.connect(path)
    return hub


def send(hub, method, **params):
    hub.sendall((json.dumps({"id": method, "method": method, "params": params}) + "\n").encode())


def follow_orders(hub):
    for line in hub.makefile(encoding="utf-8"):
        message = json.loads(line)
        data = message.get("data", {})
        if message.get("event") == "ring":
            sign = f"(( {data['kind']} {data['unread']} ))" if data["lit"] else "quiet"
            print(data["surface_id"], sign, flush=True)
        elif message.get("event") == "focus":
            print("went to", data["surface_id"], flush=True)
            send(hub, "surface.focused", surface_id=data["surface_id"])
        elif message.get("event") == "toast" and data["text"]:
            print("toast:", data["text"], flush=True)
        elif "error" in message:
            print("refused:", message["error"]["message"], file=sys.stderr, flush=True)
    # The hub has ended.
    os._exit(0)


def main():
    hub = connect()
    send(hub, "host.attach", name="example", version=1, can_focus=True)
    surfaces = [{"surface_id": name, "workspace_id": "example", "title": name} for name in sys.argv[1:]]
    send(hub, "surface.opened", surfaces=surfaces)
    send(hub, "surface.views", views=[])
    threading.Thread(target=follow_orders, args=(hub,), daemon=True).start()
    for line in sys.stdin:
        views = [{"client": "terminal", "surface_id": line.strip()}] if line.strip() else []
        send(hub, "surface.views", views=views)


main()
