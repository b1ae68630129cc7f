//! The memory allocator of this process.

/// Lets all threads of this process take memory from one heap. glibc gives each thread a heap of its own, and what one of them
/// frees the others cannot use: a process that stays, with few threads and much to keep, takes a sixth less this way. To be called
/// before any other thread is started. Elsewhere it does nothing.
pub fn share_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "there is no safe way to set it, and it only sets a number")]
    // SAFETY: it may be called at any time, and changes no memory that is in use.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
