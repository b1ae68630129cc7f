//! `ringer completions`.

use clap::ValueEnum;
use clap_complete::generate;
use clap_complete_nushell::Nushell;

use crate::failure::Outcome;
use crate::output::print_bytes;

/// Generate shell completions
///
/// In bash, zsh and fish they offer open notifications and running agents, too.
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

/// These scripts call `ringer complete`, which knows the open ids and agents.
const BASH: &str = include_str!("completions/ringer.bash");
const ZSH: &str = include_str!("completions/ringer.zsh");
const FISH: &str = include_str!("completions/ringer.fish");

/// Prints the script for a shell. The script for Nushell contains the whole command line, which is `command`.
pub(crate) fn run(arguments: &Args, mut command: clap::Command) -> Outcome {
    match arguments.shell {
        Shell::Bash => print_bytes(BASH.as_bytes()),
        Shell::Zsh => print_bytes(ZSH.as_bytes()),
        Shell::Fish => print_bytes(FISH.as_bytes()),
        Shell::Nushell => {
            let mut script = Vec::new();
            generate(Nushell, &mut command, "ringer", &mut script);
            print_bytes(&script)
        }
    }
}
