//! FNV-1a: a hash that is the same in every version and on every machine, unlike the hashes of the standard library. It is for
//! names that are stored or shown, and gives no protection against an attacker.

/// The 64-bit FNV-1a hash.
///
/// ```
/// assert_eq!(ringer_core::hash::fnv1a_64(*b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv1a_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The 32-bit FNV-1a hash.
///
/// ```
/// assert_eq!(ringer_core::hash::fnv1a_32(*b"a"), 0xe40c_292c);
/// ```
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
