//! What deciding asks of a trace, in one pass over its spans.

use crate::wire::Fields;

/// Of spans that all have a start and an end.
#[derive(Debug, PartialEq)]
pub struct Facts<'a> {
    /// The earliest start, Unix nanoseconds.
    pub first: u64,
    /// The latest end.
    pub last: u64,
    /// A bit for each status code there is: 1 unset, 2 ok, 4 error.
    pub statuses: u8,
    /// The `KeyValue` messages that have one of the keys asked for, in their order.
    pub attributes: Vec<&'a [u8]>,
}

const SPANS: u8 = 0x12;
const PARENT: u8 = 0x22;
const ATTRIBUTES: u8 = 0x4a;
const KEY: u8 = 0x0a;
const VALUE: u8 = 0x12;
const LARGEST_CODE: u64 = 2;
const SIGN: u64 = 1 << 63;
const START: u8 = 1;
const END: u8 = 2;
const STATUS: u8 = 4;

/// Facts of framed spans; `None` when one lacks a time, or tells anything twice. Without keys no attribute is looked at.
pub fn facts<'a>(spans: &'a [u8], keys: &[&[u8]]) -> Option<Facts<'a>> {
    let mut found = Facts { first: u64::MAX, last: 0, statuses: 0, attributes: Vec::new() };
    let mut framed = Fields::of(spans);
    while let Some(tag) = framed.byte() {
        if tag != SPANS {
            return None;
        }
        add(framed.delimited()?, keys, &mut found)?;
    }
    (found.statuses != 0 && found.last < SIGN && found.first < SIGN).then_some(found)
}

fn add<'a>(span: &'a [u8], keys: &[&[u8]], found: &mut Facts<'a>) -> Option<()> {
    let mut fields = Fields::of(span);
    let mut seen = 0;
    let mut code = 0;
    let mut once = |field: u8| {
        let first = seen & field == 0;
        seen |= field;
        first.then_some(())
    };
    while let Some(tag) = fields.byte() {
        match tag {
            0x39 => {
                once(START)?;
                let start = fields.fixed64()?;
                if start == 0 || start >= SIGN {
                    return None;
                }
                found.first = found.first.min(start);
            }
            0x41 => {
                once(END)?;
                found.last = found.last.max(fields.fixed64()?);
            }
            0x7a => {
                once(STATUS)?;
                code = status(fields.delimited()?)?;
            }
            ATTRIBUTES if !keys.is_empty() => {
                let pair = fields.delimited()?;
                if keys.contains(&key_of(pair)?) {
                    found.attributes.push(pair);
                }
            }
            // Times side by side, as one list.
            0x3a | 0x42 => return None,
            _ => fields.skip(tag)?,
        }
    }
    found.statuses |= 1 << code;
    (seen & (START | END) == START | END).then_some(())
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

/// Whether one of the framed spans has no parent; `None` where one has an id that is none, or several.
pub fn has_root(spans: &[u8]) -> Option<bool> {
    let mut found = false;
    let mut framed = Fields::of(spans);
    while let Some(tag) = framed.byte() {
        if tag != SPANS {
            return None;
        }
        found |= is_root(framed.delimited()?)?;
    }
    Some(found)
}

fn is_root(span: &[u8]) -> Option<bool> {
    let mut fields = Fields::of(span);
    let mut parent = None;
    while let Some(tag) = fields.byte() {
        match tag {
            PARENT if parent.is_some() => return None,
            PARENT => parent = Some(<[u8; 8]>::try_from(fields.delimited()?).ok()?),
            _ => fields.skip(tag)?,
        }
    }
    Some(parent.is_none_or(|id| id == [0; 8]))
}

fn status(message: &[u8]) -> Option<u64> {
    let mut fields = Fields::of(message);
    let mut code = None;
    while let Some(tag) = fields.byte() {
        match tag {
            0x12 => drop(fields.delimited()?),
            0x18 if code.is_none() => code = Some(fields.varint()?),
            _ => return None,
        }
    }
    let code = code.unwrap_or(0);
    (code <= LARGEST_CODE).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::{facts, has_root, Facts};

    fn span_of(fields: &[&[u8]]) -> Vec<u8> {
        let body = fields.concat();
        [&[0x12, u8::try_from(body.len()).unwrap()], &body[..]].concat()
    }

    fn time(tag: u8, at: u64) -> Vec<u8> {
        [&[tag], &at.to_le_bytes()[..]].concat()
    }

    #[test]
    fn earliest_latest_and_every_status() {
        let one = span_of(&[&time(0x39, 5), &time(0x41, 6), &[0x7a, 2, 0x18, 2]]);
        let other = span_of(&[&time(0x39, 3), &time(0x41, 4), &[0x7a, 0]]);
        let all = [one, other].concat();
        assert_eq!(facts(&all, &[]), Some(Facts { first: 3, last: 6, statuses: 0b101, attributes: vec![] }));
    }

    fn attribute(key: &[u8]) -> Vec<u8> {
        [&[0x0a, u8::try_from(key.len()).unwrap()], key, &[0x12, 2, 0x10, 1]].concat()
    }

    fn with(pairs: &[&[u8]]) -> Vec<u8> {
        let fields: Vec<_> =
            pairs.iter().map(|pair| [&[0x4a, u8::try_from(pair.len()).unwrap()], *pair].concat()).collect();
        span_of(&[&time(0x39, 3), &fields.concat(), &time(0x41, 4)])
    }

    #[test]
    fn attributes_of_some_keys_in_their_order() {
        let [one, other, third] = [&b"a"[..], b"b", b"c"].map(attribute);
        let spans = [with(&[&one, &other]), with(&[&third, &one])].concat();
        assert_eq!(facts(&spans, &[b"a", b"c"]).unwrap().attributes, [&one[..], &third, &one]);
        assert!(facts(&spans, &[b"d"]).unwrap().attributes.is_empty());
    }

    #[test]
    fn an_attribute_without_one_key_is_unusual_where_keys_are_asked_for() {
        let twice = [&[0x0a, 1, b'a'][..], &[0x0a, 1, b'b']].concat();
        for pair in [&twice[..], &[]] {
            assert_eq!(facts(&with(&[pair]), &[b"a"]), None);
            assert!(facts(&with(&[pair]), &[]).is_some());
        }
    }

    #[test]
    fn a_span_without_a_parent_is_a_root() {
        let child = span_of(&[&[0x22, 8, 1, 1, 1, 1, 1, 1, 1, 1], &time(0x39, 5)]);
        assert_eq!(has_root(&child), Some(false));
        assert_eq!(has_root(&[child.clone(), span_of(&[&[0x2a, 0]])].concat()), Some(true));
        assert_eq!(has_root(&span_of(&[&[0x22, 8, 0, 0, 0, 0, 0, 0, 0, 0]])), Some(true));
        assert_eq!(has_root(&[child, span_of(&[&[0x22, 0]])].concat()), None, "an id of no bytes");
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        assert_eq!(facts(&[], &[]), None, "no span");
        assert_eq!(facts(&span_of(&[&time(0x41, 4)]), &[]), None, "no start");
        assert_eq!(facts(&span_of(&[&time(0x39, 0), &time(0x41, 4)]), &[]), None, "a start of 0");
        assert_eq!(facts(&span_of(&[&time(0x39, 3), &time(0x39, 3), &time(0x41, 4)]), &[]), None, "two starts");
        let listed = span_of(&[&time(0x39, 3), &time(0x41, 4), &[0x3a, 0]]);
        assert_eq!(facts(&listed, &[]), None, "starts as a list");
    }
}
