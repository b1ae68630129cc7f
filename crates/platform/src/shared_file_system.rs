//! File systems that several machines may use at once.

use std::path::Path;

/// The kernel's numbers of file systems of a network, or of a program that may be one: NFS, SMB, FUSE, 9P, AFS, Coda, Ceph, Lustre, GPFS,
/// `BeeGFS`, `OrangeFS`, `PanFS`, OCFS2, GFS2, shared folders of a virtual machine.
#[cfg(target_os = "linux")]
const SHARED: [u32; 20] = [
    0x1983_0326,
    0x6b41_4653,
    0x7461_636f,
    0x0116_1970,
    0xaad7_aaea,
    0x2003_0528,
    0x7375_7245,
    0xbacb_acbc,
    0x7c7c_6673,
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x4750_4653,
    0x786f_4256,
];

/// Whether a file may be on a file system that other machines use, too. What is not there yet is where its directory is.
#[cfg(target_os = "linux")]
pub fn is_on_shared_file_system(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| rustix::fs::statfs(path).ok());
    // The field has another type on each processor. All of these numbers fit into 32 bits.
    let number = found.and_then(|found| u32::try_from(i128::from(found.f_type) & 0xffff_ffff).ok());
    number.is_some_and(|number| SHARED.contains(&number))
}

/// Where the kernel does not tell it in this way.
#[cfg(not(target_os = "linux"))]
pub fn is_on_shared_file_system(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_machine_has_is_not_shared() {
        assert!(!is_on_shared_file_system(Path::new("/proc/self/nothing/here")));
        assert!(!is_on_shared_file_system(&std::env::temp_dir().join("not there yet")));
    }
}
