//! Lists what a program tells its terminal: `printf '\033]9;done\007' | cargo run -p ringer-term --example scan`.

use std::io::{Read, stdin};

use ringer_term::Scanner;

fn main() -> std::io::Result<()> {
    let mut scanner = Scanner::new();
    let mut bytes = [0; 4096];
    loop {
        let read = stdin().lock().read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        scanner.feed(&bytes[..read], |event| println!("{:>8}  {:?}", event.offset, event.kind));
    }
}
