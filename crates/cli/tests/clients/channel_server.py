# An MCP server that pushes messages: it keeps what its client tells it, and writes what the test puts into its FIFO.
import json, os, sys, threading

directory = sys.argv[1]
heard = open(directory + "/heard", "a")


def write(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def control():
    for line in open(os.open(directory + "/control", os.O_RDWR)):
        write(line.rstrip("\n"))


for line in sys.stdin:
    heard.write(line)
    heard.flush()
    request = json.loads(line)
    if request.get("method") == "initialize":
        experimental = {"claude/channel": {}, "claude/channel/permission": {}}
        write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {
            "protocolVersion": request["params"]["protocolVersion"], "serverInfo": {"name": "chat", "version": "1"},
            "capabilities": {"experimental": experimental}}}))
        threading.Thread(target=control, daemon=True).start()
