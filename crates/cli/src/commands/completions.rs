//! `ringer completions`.

use clap::ValueEnum;
use clap_complete::{Shell as Known, generate};
use clap_complete_nushell::Nushell;

use crate::failure::Outcome;
use crate::output::print_bytes;

/// Generate shell completions
///
/// Examples:
///   ringer completions bash > ~/.local/share/bash-completion/completions/ringer
///   ringer completions zsh > ~/.zfunc/_ringer   # with fpath+=~/.zfunc before compinit
///   ringer completions fish > ~/.config/fish/completions/ringer.fish
///   ringer completions nushell > ~/.config/nushell/completions/ringer.nu   # and source it
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Shell to generate for
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

/// Writes completions of the whole command line, which is `command`.
pub(crate) fn run(arguments: &Args, mut command: clap::Command) -> Outcome {
    let mut script = Vec::new();
    let mut write = |known| generate(known, &mut command, "ringer", &mut script);
    match arguments.shell {
        Shell::Bash => write(Known::Bash),
        Shell::Zsh => write(Known::Zsh),
        Shell::Fish => write(Known::Fish),
        Shell::Nushell => generate(Nushell, &mut command, "ringer", &mut script),
    }
    print_bytes(&script)
}
