// ringer-hook: written by `ringer setup opencode`, taken away by `ringer setup --remove opencode`.
// Tells Ringer what happens in a session, and puts what Ringer has for the agent under the next tool result.
// While a session is idle, a hook waits for messages, and what comes is the session's next message.
// While a dialog is open, a hook waits beside it for an answer that is given elsewhere, and the answer is passed on.
// It never throws, never makes opencode wait for more than two seconds, and does nothing where Ringer is not installed.
import { spawn } from "node:child_process"

const PROGRAM = "@PROGRAM@"
const PATIENCE_MS = 2000
const MOST_OUTPUT = 262144
const MOST_TEXT = 8192
const MOST_SESSIONS = 64

const EVENTS = new Set([
  "session.created",
  "session.deleted",
  "session.status",
  "session.idle",
  "session.error",
  "permission.asked",
  "permission.updated",
  "permission.replied",
  "question.asked",
  "question.replied",
  "question.rejected",
])

// `opencode run` exits after its turn: a follow-up prompt would be lost.
const ENDS_WITH_TURN = process.argv.slice(2).find((word) => !word.startsWith("-")) === "run"

// Starts the hook. Passes its output to `finish`, or an empty text if it failed.
const start = (event, input, finish) => {
  let output = ""
  const child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
  child.on("error", () => finish(""))
  // A hook that this plugin stopped may already have claimed a message.
  child.on("close", (code, signal) => finish(code === 0 || signal ? output : ""))
  child.stdout.setEncoding("utf8")
  child.stdout.on("error", () => {})
  child.stdout.on("data", (text) => {
    if (output.length + text.length <= MOST_OUTPUT) output += text
  })
  child.stdin.on("error", () => {})
  child.stdin.end(JSON.stringify(input))
  return child
}

const parse = (text) => {
  try {
    return text.trim() ? (JSON.parse(text) ?? {}) : {}
  } catch {
    return {}
  }
}

// Resolves to the hook's answer, or to an empty object if it failed. Starts when the previous call is over.
const call = (event, input, before) =>
  new Promise((resolve) => {
    let child
    let over = false
    const finish = (text) => {
      over = true
      clearTimeout(timer)
      resolve(parse(text))
    }
    const timer = setTimeout(() => {
      finish("")
      try {
        child?.kill("SIGKILL")
      } catch {}
    }, PATIENCE_MS)
    const begin = () => {
      if (over) return
      try {
        child = start(event, input, finish)
      } catch {
        finish("")
      }
    }
    before.then(begin)
  })

// Hooks that wait beside a dialog.
const waiting = new Set()

// Hooks that wait for messages, by idle session.
const listening = new Map()
const stopListening = (id) => {
  listening.get(id)?.kill()
  listening.delete(id)
}

// Facts about a session that later events do not repeat: its parent, its last assistant text, and its last hook call. opencode
// does not wait for event handlers, and a `busy` must not arrive after the `idle` of the same moment.
const sessions = new Map()
const session = (id) => {
  const known = sessions.get(id) ?? { parent: null, message: null, text: null, busy: false, aborted: false, told: Promise.resolve({}) }
  sessions.delete(id)
  sessions.set(id, known)
  if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value)
  return known
}

// A turn starts: new messages enter it.
const begins = (id) => {
  session(id).busy = true
  session(id).aborted = false
  stopListening(id)
}

const remember = (type, properties) => {
  const { info, part } = properties
  if (type === "session.status" && properties.status?.type !== "idle") begins(properties.sessionID)
  if (type === "session.idle") session(properties.sessionID).busy = false
  if (type === "session.created" && info?.id) session(info.id).parent = info.parentID ?? null
  if (type === "message.updated" && info?.role === "assistant") session(info.sessionID).message = info.id
  if (type === "message.part.updated" && part?.type === "text") {
    const known = session(part.sessionID)
    if (known.message === part.messageID) known.text = String(part.text ?? "").slice(-MOST_TEXT)
  }
}

export const Ringer = async (context) => {
  const tell = (type, id, more) => {
    const known = session(id)
    const parent = known.parent ? { parentID: known.parent } : {}
    const cwd = context?.directory ?? process.cwd()
    // A subagent's calls are for its parent session, and share its queue.
    const line = known.parent ? session(known.parent) : known
    line.told = call(type, { type, session_id: id ?? null, cwd, ...parent, ...more }, line.told)
    return line.told
  }

  // Waits beside an open dialog, outside the queue, and passes on an answer given elsewhere. The hook exits when the dialog is
  // answered. opencode takes the first answer.
  const answerElsewhere = (asked, id, properties) => {
    const http = context?.client?._client
    if (!http || !properties.id) return
    const event = asked.replace(".asked", ".waiting")
    const finish = (text) => {
      waiting.delete(child)
      const answer = parse(text)
      const kind = ["permission", "question"].find((kind) => answer[kind])
      if (!kind) return
      const url = `/${kind}/{requestID}/reply`
      const headers = { "Content-Type": "application/json" }
      const path = { requestID: properties.id }
      http.post({ url, path, body: answer[kind], headers })?.catch?.(() => {})
    }
    const input = { type: event, session_id: id ?? null, cwd: context?.directory ?? process.cwd(), properties }
    const child = start(event, input, finish)
    waiting.add(child)
  }

  // Waits for messages while a session is idle, outside the queue. The hook exits with this process.
  const listen = (id) => {
    const known = session(id)
    if (ENDS_WITH_TURN || known.parent || known.busy) return
    stopListening(id)
    const event = "session.waiting"
    const finish = (text) => {
      if (listening.get(id) === child) listening.delete(id)
      const message = parse(text).prompt
      if (typeof message === "string") prompt(id, message)
    }
    const child = start(event, { type: event, session_id: id, cwd: context?.directory ?? process.cwd() }, finish)
    listening.set(id, child)
    if (listening.size > MOST_SESSIONS) stopListening(listening.keys().next().value)
  }

  // Not awaited: it lasts as long as the turn that it starts.
  const prompt = (id, text) => {
    const api = context.client.session
    const message = { path: { id }, body: { parts: [{ type: "text", text }] } }
    const begun = api.promptAsync ? api.promptAsync(message) : api.prompt(message)
    begun?.catch?.(() => {})
  }

  return {
    event: async ({ event }) => {
      try {
        const properties = event?.properties ?? {}
        remember(event?.type, properties)
        if (!EVENTS.has(event?.type)) return
        const id = properties.sessionID ?? properties.info?.sessionID ?? properties.info?.id
        const isIdle = event.type === "session.idle"
        const last = isIdle && sessions.get(id)?.text
        const more = last ? { properties, last_assistant_message: last } : { properties }
        if (isIdle && ENDS_WITH_TURN) more.ends_with_turn = true
        // The tool that was running ends after this, and the session is idle once more.
        if (event.type === "session.error" && properties.error?.name === "MessageAbortedError") session(id).aborted = true
        if (isIdle && session(id).aborted) more.aborted = true
        const answer = await tell(event.type, id, more)
        if (event.type.endsWith(".asked")) answerElsewhere(event.type, id, properties)
        if (isIdle && id && typeof answer.prompt === "string") prompt(id, answer.prompt)
        else if (id && (isIdle || event.type === "session.created")) listen(id)
        if (event.type === "session.deleted") {
          stopListening(id)
          sessions.delete(id)
        }
      } catch {}
    },
    "chat.message": async (input, output) => {
      try {
        begins(input?.sessionID)
        const texts = (output?.parts ?? []).filter((part) => part?.type === "text").map((part) => part.text)
        await tell("chat.message", input?.sessionID, { prompt: texts.join("\n").slice(0, MOST_TEXT) })
      } catch {}
    },
    // The description of notifications and their nonce. Requested once per session, and part of every system prompt.
    "experimental.chat.system.transform": async (input, output) => {
      try {
        const id = input?.sessionID
        if (!id || !Array.isArray(output?.system)) return
        const known = session(id)
        if (known.parent) return
        known.context ??= (await tell("session.context", id, {})).system
        if (typeof known.context === "string") output.system.push(known.context)
      } catch {}
    },
    "tool.execute.before": async (input, output) => {
      try {
        // The tool's arguments are shown in a line; file contents may be long.
        const texts = Object.entries(output?.args ?? {}).filter(([, value]) => typeof value === "string")
        const args = Object.fromEntries(texts.map(([name, text]) => [name, text.slice(0, 300)]))
        await tell("tool.execute.before", input?.sessionID, { tool: input?.tool, callID: input?.callID, args })
      } catch {}
    },
    "tool.execute.after": async (input, output) => {
      try {
        // The result of an MCP tool consists of parts.
        const parts = Array.isArray(output?.content) ? output.content : null
        // A result that cannot be extended must not request messages, or they would be lost.
        if (!parts && typeof output?.output !== "string") return
        const more = { tool: input?.tool, callID: input?.callID, aborted: session(input?.sessionID).aborted }
        const { append } = await tell("tool.execute.after", input?.sessionID, more)
        if (typeof append !== "string") return
        // At the front: opencode truncates the end of a long result, and has already done so for a text.
        if (parts) parts.unshift({ type: "text", text: append.trim() })
        else output.output += append
      } catch {}
    },
    // The process may be exiting, and the last event may have just arrived.
    dispose: async () => {
      for (const child of [...waiting, ...listening.values()]) child.kill()
      await Promise.all([...sessions.values()].map((known) => known.told))
    },
  }
}
