//! The port through which the log, and all else that must survive a crash, touches the disk.
//!
//! [`LocalDisk`] is the machine's own. `testkit` has one that loses, tears and reorders what was
//! not synced, with a SQLite VFS over the same files.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file that is read and written by position. All calls block.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file of the log is empty")]
pub trait DiskFile: Send + Sync {
    /// Fills `buffer` from `offset`; a short file is `UnexpectedEof`.
    ///
    /// # Errors
    /// The operating system's.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`. Durable only after [`Self::sync`].
    ///
    /// # Errors
    /// The operating system's.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The file's length in bytes.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends with zeros.
    ///
    /// # Errors
    /// The operating system's.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes sure that writes below `len` will not fail for want of space. Does not change the
    /// bytes that are there; may extend the file with zeros.
    ///
    /// # Errors
    /// `StorageFull` if there is no room.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Waits until all writes so far, and the length, are on stable storage (`fdatasync`).
    ///
    /// # Errors
    /// After an error nothing is known of earlier writes; never call it again to "retry".
    fn sync(&self) -> io::Result<()>;
}

/// A tree of files. All calls block.
pub trait Disk: Send + Sync {
    /// Opens `path` for reading and writing; creates it if `create`. A new file's name is durable only after [`Self::sync_dir`].
    ///
    /// # Errors
    /// `NotFound` if it is not there and `create` is false.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// The operating system's.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Renames a file over `to`.
    ///
    /// # Errors
    /// The operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Whether a file is there.
    fn exists(&self, path: &Path) -> bool;
    /// The files of a folder, in no order; a folder that is not there has none.
    ///
    /// # Errors
    /// The operating system's.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes a folder and its parents, durably.
    ///
    /// # Errors
    /// The operating system's.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// The operating system's.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// The name of the SQLite VFS that works on this disk; `None` is SQLite's own default.
    fn vfs(&self) -> Option<&str> {
        None
    }
}

/// The machine's own disk.
pub struct LocalDisk;

struct LocalFile(File);

impl DiskFile for LocalFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let have = self.len()?;
        if len <= have {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), have, len - have) {
            Ok(()) => Ok(()),
            // A file system without the call: zeros take the place of the reservation.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let zeros = vec![0; 1 << 20];
                let mut at = have;
                while at < len {
                    let n = (len - at).min(zeros.len() as u64);
                    self.0.write_all_at(&zeros[..n as usize], at)?;
                    at += n;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Disk for LocalDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        Ok(Arc::new(LocalFile(file)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push(entry.path());
            }
        }
        Ok(files)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        // Each level's name is made durable, not only the last one's.
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.create_dir(parent)?;
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.sync_dir(parent)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// The machine's own disk, through which nothing can be changed: for looking at a folder.
///
/// Files are opened for reading only, so the system refuses every write to them.
pub struct ReadOnlyDisk;

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnlyDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        if create {
            return read_only();
        }
        Ok(Arc::new(LocalFile(File::open(path)?)))
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn exists(&self, path: &Path) -> bool {
        LocalDisk.exists(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        LocalDisk.list(dir)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }
}
