"""Uses every tool of an MCP server that is started with these arguments, in one mode of the client, and prints what comes."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


def say(name, value):
    print(json.dumps({name: value}), flush=True)


async def main(mode, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server, mode=mode) as client:

        async def call(tool, **given):
            result = await client.call_tool(tool, given)
            return {"failed": result.is_error, "text": "\n".join(part.text for part in result.content)}

        async def progress(waited, total, message):
            say("progress", [total, message])

        say("version", client.protocol_version)
        say("tools", [tool.name for tool in (await client.list_tools()).tools])
        say("notify", await call("notify", message="it builds", kind="complete"))
        say("wrong", await call("notify", text="it builds"))
        asked = {"question": "Which port?", "options": ["80", "8080"], "timeout_seconds": 80}
        result = await client.call_tool("ask", asked, progress_callback=progress)
        say("ask", result.content[0].text)
        say("inbox", await call("inbox"))
        for tool in ["questions", "list", "status"]:
            say(tool, await call(tool))


asyncio.run(main(*sys.argv[1:]))
