//! Searches through framed spans for bytes and links, and the hash by which traces are chosen.

use memchr::{memchr, memmem};

/// Where a mark stands first, at a place or behind it.
pub fn find(bytes: &[u8], mark: &[u8], start: usize) -> Option<usize> {
    memmem::find(bytes.get(start..)?, mark).map(|at| start + at)
}

/// A link's tag, and what stands before and behind the id of its trace: between the tag and that, the link's length.
const LINK: u8 = 0x6a;
const TRACE_ID: [u8; 2] = [0x0a, 16];
const SPAN_ID: [u8; 2] = [0x12, 8];
const LENGTHS: std::ops::RangeInclusive<usize> = 1..=3;

/// The ids of at most so many traces that spans link to, found by what a link looks like.
pub fn linked_traces(spans: &[u8], most: usize) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = spans;
    while found.len() < most {
        let Some(at) = memchr(LINK, rest) else { break };
        rest = &rest[at + 1..];
        if let Some((id, behind)) = LENGTHS.rev().find_map(|length| target(rest.get(length..)?)) {
            found.push(id);
            rest = behind;
        }
    }
    found
}

/// The trace id that a link begins with, and what stands behind the tag of its span id.
fn target(link: &[u8]) -> Option<(&[u8], &[u8])> {
    let (id, behind) = link.strip_prefix(&TRACE_ID)?.split_at_checked(16)?;
    Some((id, behind.strip_prefix(&SPAN_ID)?))
}

/// The FNV-1a hash of 64 bits, going on from the hash of what stands before these bytes.
pub fn fnv1a(bytes: &[u8], state: u64) -> u64 {
    bytes.iter().fold(state, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{find, fnv1a, linked_traces};

    #[test]
    fn marks_are_found_as_by_bytes_find() {
        assert_eq!(find(b"abcab", b"ab", 0), Some(0));
        assert_eq!(find(b"abcab", b"ab", 1), Some(3));
        assert_eq!(find(b"abcab", b"abd", 0), None);
        assert_eq!(find(b"abc", b"", 3), Some(3));
        assert_eq!(find(b"abc", b"", 4), None);
    }

    #[test]
    fn links_are_known_by_their_looks() {
        let link = |id: u8, length: &[u8]| [&[0x6a], length, &[0x0a, 16], &[id; 16][..], &[0x12, 8]].concat();
        let spans = [b"j", &link(1, &[28])[..], b"jj", &link(2, &[0x9c, 1]), &link(3, &[0x9c, 0x80, 1])].concat();
        assert_eq!(linked_traces(&spans, 128), [[1; 16], [2; 16], [3; 16]]);
        assert_eq!(linked_traces(&spans, 2), [[1; 16], [2; 16]]);
        assert!(linked_traces(&link(1, &[28])[..21], 128).is_empty());
    }

    #[test]
    fn hashes_are_those_of_fnv_1a() {
        assert_eq!(fnv1a(b"foobar", 0xcbf2_9ce4_8422_2325), 0x8594_4171_f739_67e8);
    }
}
