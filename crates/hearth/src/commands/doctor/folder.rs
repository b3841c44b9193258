//! The folder itself: permissions, the key, the lock, free space.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{Access, access, statvfs};

use super::{Report, Severity};
use crate::{
    lock::Holder,
    owner_key::{self, KEY_FILE},
    shell::Shell,
};

/// Free bytes below which a commit may soon fail.
const FREE_BYTES_ERROR: u64 = 64 * 1024 * 1024;
/// Free bytes below which it is time to act.
const FREE_BYTES_WARNING: u64 = 1024 * 1024 * 1024;
/// Free inodes below which it is time to act.
const FREE_FILES_WARNING: u64 = 1_000;

/// Checks that the folder is there and the owner's alone; false if nothing more can be looked at.
pub(super) fn check_folder(data: &Path, report: &mut Report) -> bool {
    let shown = data.display();
    let quoted = Shell::Sh.quote(&data.to_string_lossy());
    let metadata = match fs::metadata(data) {
        Ok(metadata) => metadata,
        Err(error) => {
            report.add(
                Severity::Error,
                "folder",
                format!("{shown} cannot be looked at: {error}"),
                "name the folder with --data; `hearth serve` makes a new one",
            );
            return false;
        }
    };
    if !metadata.is_dir() {
        report.add(Severity::Error, "folder", format!("{shown} is not a folder"), "name a folder with --data");
        return false;
    }
    let (mode, user) = (metadata.mode() & 0o777, rustix::process::geteuid());
    if metadata.uid() != user.as_raw() {
        let found = format!("{shown} belongs to user {}, and this is user {}", metadata.uid(), user.as_raw());
        report.add(Severity::Warning, "folder", found, format!("run Hearth as its owner, or `chown -R {} {quoted}`", user.as_raw()));
    }
    if mode & 0o022 != 0 {
        let found = format!("others may write to {shown} (mode {mode:04o}, expected 0700)");
        report.add(Severity::Error, "folder", found, format!("chmod 700 {quoted}"));
    } else if mode & 0o055 != 0 {
        let found = format!("others may read {shown} (mode {mode:04o}, expected 0700)");
        report.add(Severity::Warning, "folder", found, format!("chmod 700 {quoted}"));
    }
    if let Err(error) = access(data, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        let found = format!("this user cannot read and write {shown}: {}", io::Error::from(error));
        report.add(Severity::Error, "folder", found, format!("chmod 700 {quoted}, or mount its file system for writing"));
    } else {
        report.add(Severity::Ok, "folder", format!("{shown}, mode {mode:04o}"), "");
    }
    true
}

/// Reports whether a server runs; returns it.
pub(super) fn check_lock(data: &Path, holder: io::Result<Option<Holder>>, report: &mut Report) -> Option<Holder> {
    match holder {
        Ok(Some(holder)) => {
            let pid = holder.pid.map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"));
            let at = holder.url.as_deref().unwrap_or("no address yet");
            report.add(Severity::Note, "server", format!("{pid} runs on this folder at {at}; its database files were not judged"), "");
            Some(holder)
        }
        Ok(None) => {
            report.add(Severity::Ok, "server", "none runs on this folder", "");
            None
        }
        Err(error) => {
            let lock = data.join(crate::lock::LOCK_FILE);
            let remedy = format!("chmod 600 {}", Shell::Sh.quote(&lock.to_string_lossy()));
            report.add(Severity::Error, "server", format!("the lock {} cannot be read: {error}", lock.display()), remedy);
            // Files may be in motion, so they are not judged.
            Some(Holder { pid: None, url: None })
        }
    }
}

/// Checks the owner's key.
pub(super) fn check_key(data: &Path, in_variable: bool, report: &mut Report) {
    let also = if in_variable { "; HEARTH_KEY is set here and is used instead" } else { "" };
    match owner_key::read(data) {
        Ok(Some(_)) => report.add(Severity::Ok, "key", format!("{KEY_FILE} is whole and its owner's alone{also}"), ""),
        Ok(None) => {
            report.add(Severity::Note, "key", format!("no {KEY_FILE}; the first start without HEARTH_KEY makes it{also}"), "");
        }
        Err(failure) => {
            report.add(
                Severity::Error,
                "key",
                failure.message,
                failure.hint.unwrap_or_else(|| format!("make {KEY_FILE} readable for this user")),
            );
        }
    }
}

/// Checks the room on the folder's file system.
pub(super) fn check_space(data: &Path, report: &mut Report) {
    let space = match statvfs(data) {
        Ok(space) => space,
        Err(error) => {
            report.add(Severity::Warning, "space", format!("free space is not known: {}", io::Error::from(error)), "look with `df`");
            return;
        }
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let mb = free / 1_000_000;
    let severity = match free {
        0..FREE_BYTES_ERROR => Severity::Error,
        FREE_BYTES_ERROR..FREE_BYTES_WARNING => Severity::Warning,
        _ => Severity::Ok,
    };
    let remedy = if severity == Severity::Ok { "" } else { "free space, or move the folder to a larger disk" };
    report.add(severity, "space", format!("{mb} MB free"), remedy);
    // File systems without a fixed number of inodes report none at all.
    if space.f_files > 0 && space.f_favail < FREE_FILES_WARNING {
        report.add(
            Severity::Warning,
            "space",
            format!("only {} more files can be made", space.f_favail),
            "remove files from that file system",
        );
    }
}
