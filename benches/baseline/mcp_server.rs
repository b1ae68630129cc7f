//! The least an MCP server can cost: it answers every request on a line with the same result, under the request's id. `cargo
//! xtask bench mcp` starts it beside `ringer mcp`, and puts `ringer mcp proxy` in front of it.

use std::io::{BufRead, Write};

const RESULT: &str = r#"{"content":[{"type":"text","text":"it ran"}]}"#;

fn main() {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        // The requests of the benchmark begin with a number as their id.
        let id: String = line.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        let written = writeln!(output, "{{\"id\":{id},\"jsonrpc\":\"2.0\",\"result\":{RESULT}}}");
        if written.and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
