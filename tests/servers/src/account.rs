//! Servers that refuse to run as root are run as somebody else.

use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

/// A command to run a program as the one it is to run as, who owns the folder
/// from now on: ourselves, unless we are root.
///
/// # Panics
///
/// If we are root, and nobody else has an account.
#[must_use]
pub fn command(program: &Path, folder: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    give(folder);
    let (user, group) = somebody();
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={group}"))
        .arg("--clear-groups")
        .arg(program);
    command
}

/// Gives a file to the one that such programs are run as.
///
/// # Panics
///
/// As [`command`].
pub fn give(file: &Path) {
    if geteuid().is_root() {
        let (user, group) = somebody();
        chown(file, Some(user), Some(group)).expect("a file of our own");
    }
}

fn somebody() -> (u32, u32) {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = |name: &str| {
        let line = accounts.lines().find(|line| line.starts_with(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    account("postgres:")
        .or_else(|| account("nobody:"))
        .expect("an account called postgres or nobody")
}
