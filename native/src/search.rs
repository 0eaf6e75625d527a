//! Searches through framed spans for bytes, links and attributes, and the hash by which traces are chosen.

use memchr::{memchr, memmem};

use crate::wire::Fields;

const SPANS: u8 = 0x12;
const ATTRIBUTES: u8 = 0x4a;
const KEY: u8 = 0x0a;
const VALUE: u8 = 0x12;

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

/// The `KeyValue` messages of all spans that have one of these keys; `None` when anything is unusual.
pub fn attributes_of<'a>(spans: &'a [u8], keys: &[&[u8]]) -> Option<Vec<&'a [u8]>> {
    let mut found = Vec::new();
    let mut framed = Fields::of(spans);
    while let Some(tag) = framed.byte() {
        if tag != SPANS {
            return None;
        }
        let mut span = Fields::of(framed.delimited()?);
        while let Some(tag) = span.byte() {
            if tag != ATTRIBUTES {
                span.skip(tag)?;
                continue;
            }
            let pair = span.delimited()?;
            if keys.contains(&key_of(pair)?) {
                found.push(pair);
            }
        }
    }
    Some(found)
}

/// An attribute's key where it stands first and once, as every encoder writes it.
fn key_of(pair: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::of(pair);
    if fields.byte()? != KEY {
        return None;
    }
    let key = fields.delimited()?;
    while let Some(tag) = fields.byte() {
        if tag != VALUE {
            return None;
        }
        fields.delimited()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::{attributes_of, find, fnv1a, linked_traces};

    fn delimited(tag: u8, body: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(body.len()).unwrap()], body].concat()
    }

    fn attribute(key: &[u8]) -> Vec<u8> {
        [delimited(0x0a, key), delimited(0x12, &[0x10, 1])].concat()
    }

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

    #[test]
    fn attributes_of_some_keys_in_their_order() {
        let [one, other, third] = [&b"a"[..], b"b", b"c"].map(attribute);
        let first =
            delimited(0x12, &[delimited(0x4a, &one), delimited(0x2a, b"name"), delimited(0x4a, &other)].concat());
        let second = delimited(0x12, &[delimited(0x4a, &third), delimited(0x4a, &one)].concat());
        let spans = [first, second].concat();
        assert_eq!(attributes_of(&spans, &[b"a", b"c"]), Some(vec![&one[..], &third, &one]));
        assert_eq!(attributes_of(&spans, &[b"d"]), Some(vec![]));
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        let spans_of = |pair: &[u8]| delimited(0x12, &delimited(0x4a, pair));
        let twice = [delimited(0x0a, b"a"), delimited(0x0a, b"b")].concat();
        assert_eq!(attributes_of(&spans_of(&twice), &[b"a"]), None, "two keys");
        assert_eq!(attributes_of(&spans_of(&[]), &[b"a"]), None, "no key");
        let mut cut_off = spans_of(&attribute(b"a"));
        cut_off.pop();
        assert_eq!(attributes_of(&cut_off, &[b"a"]), None);
    }
}
