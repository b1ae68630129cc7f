//! FNV-1a: a hash that is the same in every version and on every machine, unlike those of the standard library. For names
//! that are stored or shown, never against an attacker.

/// Of 64 bits.
///
/// ```
/// assert_eq!(ringer_core::hash::fnv1a_64(*b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv1a_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Of 32 bits.
///
/// ```
/// assert_eq!(ringer_core::hash::fnv1a_32(*b"a"), 0xe40c_292c);
/// ```
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
