//! A larger page cache for as long as large work needs it.
#![expect(unsafe_code, reason = "memory is given back through C's interfaces")]

use base::Result;
use rusqlite::ffi;

use crate::Conn;

impl Conn {
    /// Runs `body` with a page cache of up to `bytes` instead of SQLite's 2 MB, and frees it afterwards.
    ///
    /// A large transaction that touches pages here and there writes each of them to the WAL again
    /// whenever it falls out of the cache.
    ///
    /// # Errors
    /// SQLite's, if the size cannot be set; `body` has not run then.
    pub fn with_page_cache<T>(&mut self, bytes: u64, body: impl FnOnce(&mut Self) -> T) -> Result<T> {
        self.run_internal(&format!("PRAGMA cache_size=-{}", bytes / 1024))?;
        let value = body(self);
        // What the body did is done: a size that could not be set back must not turn it into an error.
        let _ = self.run_internal("PRAGMA cache_size=-2000");
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_db_release_memory(self.handle()) };
        return_free_memory();
        Ok(value)
    }
}

/// Gives what was freed back to the system. glibc keeps it, in each thread's arena anew: after six
/// imports on six threads the process had 123 MB of which it used a few.
fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes no pointer and may be made at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
