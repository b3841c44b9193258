//! How long a run is: short by default, long and with another seed under `cargo xtask soak`.

/// Crash points of a crash run: `HEARTH_SOAK_CRASH_POINTS`, or `default`.
#[must_use]
pub fn crash_points(default: u64) -> u64 {
    number("HEARTH_SOAK_CRASH_POINTS", default)
}

/// Rounds of killing the real server: `HEARTH_SOAK_KILL_ROUNDS`, or `default`.
#[must_use]
pub fn kill_rounds(default: u64) -> u64 {
    number("HEARTH_SOAK_KILL_ROUNDS", default)
}

/// Bytes of the largest file that is imported: `HEARTH_SOAK_IMPORT_BYTES`, or `default`.
#[must_use]
pub fn import_bytes(default: u64) -> u64 {
    number("HEARTH_SOAK_IMPORT_BYTES", default)
}

/// The seed: `HEARTH_SOAK_SEED`, or `default`.
#[must_use]
pub fn seed(default: u64) -> u64 {
    number("HEARTH_SOAK_SEED", default)
}

/// Prints a line that `cargo xtask soak` copies into its result file.
pub fn print(line: impl std::fmt::Display) {
    eprintln!("soak: {line}");
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is a number from 0 to 2^64-1, got `{text}`")),
        Err(_) => default,
    }
}
