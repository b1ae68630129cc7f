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

// `opencode run` ends with its turn: what it is given to go on with then would be lost.
const ENDS_WITH_TURN = process.argv.slice(2).find((word) => !word.startsWith("-")) === "run"

// Starts the hook. Gives what it printed to `finish`, an empty text if it failed.
const start = (event, input, finish) => {
  let output = ""
  const child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
  child.on("error", () => finish(""))
  // One that this plugin has ended may have taken a message before that.
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

// What the hook answered, or an empty object if it failed in any way. It begins when the call before it is over.
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

// The hooks that wait beside a dialog.
const waiting = new Set()

// The hooks that wait for messages, by the idle session.
const listening = new Map()
const stopListening = (id) => {
  listening.get(id)?.kill()
  listening.delete(id)
}

// What a later event of a session does not say itself: its parent, and the last text of its assistant. And the last call
// for it: opencode does not wait for its events, and a `busy` must not come in after the `idle` of the same moment.
const sessions = new Map()
const session = (id) => {
  const known = sessions.get(id) ?? { parent: null, message: null, text: null, busy: false, told: Promise.resolve({}) }
  sessions.delete(id)
  sessions.set(id, known)
  if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value)
  return known
}

// A turn begins: what comes now enters it.
const begins = (id) => {
  session(id).busy = true
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
    // A subagent's calls are for the session above it, and wait in the same line.
    const line = known.parent ? session(known.parent) : known
    line.told = call(type, { type, session_id: id ?? null, cwd, ...parent, ...more }, line.told)
    return line.told
  }

  // Waits beside an open dialog, outside the line of calls, and passes on what is answered elsewhere. The hook ends by
  // itself when the dialog is answered. Of two answers opencode takes the first.
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

  // Waits for messages while a session is idle, outside the line of calls. The hook ends by itself with this process.
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

  // Not waited for: it lasts as long as the turn that it begins.
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
    // What notifications are, and by what they are known. It is asked for once, and stands in every request.
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
        // What it does is shown in a line; what it writes may be long.
        const texts = Object.entries(output?.args ?? {}).filter(([, value]) => typeof value === "string")
        const args = Object.fromEntries(texts.map(([name, text]) => [name, text.slice(0, 300)]))
        await tell("tool.execute.before", input?.sessionID, { tool: input?.tool, callID: input?.callID, args })
      } catch {}
    },
    "tool.execute.after": async (input, output) => {
      try {
        // What comes from an MCP server is in parts.
        const parts = Array.isArray(output?.content) ? output.content : null
        // What has no place for it must not be asked for, or it is gone.
        if (!parts && typeof output?.output !== "string") return
        const more = { tool: input?.tool, callID: input?.callID }
        const { append } = await tell("tool.execute.after", input?.sessionID, more)
        if (typeof append !== "string") return
        // At the front: of a long result opencode cuts the end off, and in a text it has done so before.
        if (parts) parts.unshift({ type: "text", text: append.trim() })
        else output.output += append
      } catch {}
    },
    // It may be the end of the process, and the last event has only just come.
    dispose: async () => {
      for (const child of [...waiting, ...listening.values()]) child.kill()
      await Promise.all([...sessions.values()].map((known) => known.told))
    },
  }
}
