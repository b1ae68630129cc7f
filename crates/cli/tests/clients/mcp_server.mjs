// An MCP server with one tool, which says that it ran.
import { createInterface } from "node:readline"

const tool = { name: "run", description: "Runs.", inputSchema: { type: "object", properties: {} } }
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "stand-in", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": () => ({ content: [{ type: "text", text: "it ran" }] }),
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const result = results[method]?.(params ?? {}) ?? {}
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n")
}
