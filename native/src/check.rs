//! What a span, a resource and a scope may hold: as strict as protobuf's own parser, and no wider.
//!
//! A field that OTLP does not know, that has another wire type, or that stands twice where it stands once: `None`.

use crate::wire::Fields;

/// Nothing but that it is sound.
type Checked = Option<()>;

/// Values within values; a parser's limit of 100 messages is farther off.
const DEEPEST: u8 = 16;
/// Both ids with their tags and lengths, as every SDK writes them first.
const HEAD: usize = 28;
pub const TRACE_ID: std::ops::Range<usize> = 2..18;

/// Whether the span's times tell no duration: the start or the end is 0, or the end comes first.
pub fn span(message: &[u8]) -> Option<bool> {
    let (head, rest) = message.split_at_checked(HEAD)?;
    let ids_first = head[..2] == [0x0a, 16] && head[18..20] == [0x12, 8];
    if !ids_first || head[TRACE_ID] == [0; 16] || head[20..] == [0; 8] {
        return None;
    }
    let mut fields = Fields::of(rest);
    let (mut start, mut end) = (0, 0);
    let mut seen = 0_u32;
    while let Some(tag) = fields.byte() {
        match tag {
            0x4a => key_value(fields.delimited()?, 0)?,
            0x5a => event(fields.delimited()?)?,
            0x6a => link(fields.delimited()?)?,
            _ => {
                let field = 1_u32 << (tag >> 3);
                if seen & field != 0 {
                    return None;
                }
                seen |= field;
                match tag {
                    0x1a | 0x2a => text(fields.delimited()?)?,
                    0x22 => drop(fields.delimited()?),
                    0x30 | 0x50 | 0x60 | 0x70 => drop(fields.varint()?),
                    0x39 => start = fields.fixed64()?,
                    0x41 => end = fields.fixed64()?,
                    0x7a => status(fields.delimited()?)?,
                    0x85 if fields.byte()? == 1 => drop(fields.fixed32()?),
                    _ => return None,
                }
            }
        }
    }
    Some(start == 0 || end < start)
}

fn event(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x09 => drop(fields.fixed64()?),
            0x12 => text(fields.delimited()?)?,
            0x1a => key_value(fields.delimited()?, 0)?,
            0x20 => drop(fields.varint()?),
            _ => return None,
        }
    }
    Some(())
}

fn link(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a | 0x12 => drop(fields.delimited()?),
            0x1a => text(fields.delimited()?)?,
            0x22 => key_value(fields.delimited()?, 0)?,
            0x28 => drop(fields.varint()?),
            0x35 => drop(fields.fixed32()?),
            _ => return None,
        }
    }
    Some(())
}

fn status(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x12 => text(fields.delimited()?)?,
            0x18 => drop(fields.varint()?),
            _ => return None,
        }
    }
    Some(())
}

pub fn resource(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a => key_value(fields.delimited()?, 0)?,
            0x10 => drop(fields.varint()?),
            0x1a => entity(fields.delimited()?)?,
            _ => return None,
        }
    }
    Some(())
}

fn entity(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a | 0x12 | 0x1a | 0x22 => text(fields.delimited()?)?,
            _ => return None,
        }
    }
    Some(())
}

pub fn scope(message: &[u8]) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a | 0x12 => text(fields.delimited()?)?,
            0x1a => key_value(fields.delimited()?, 0)?,
            0x20 => drop(fields.varint()?),
            _ => return None,
        }
    }
    Some(())
}

fn key_value(message: &[u8], depth: u8) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a => text(fields.delimited()?)?,
            0x12 => value(fields.delimited()?, depth)?,
            0x18 => drop(fields.varint()?),
            _ => return None,
        }
    }
    Some(())
}

fn value(message: &[u8], depth: u8) -> Checked {
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a => text(fields.delimited()?)?,
            0x10 | 0x18 | 0x40 => drop(fields.varint()?),
            0x21 => drop(fields.fixed64()?),
            0x2a => values(fields.delimited()?, depth + 1, value)?,
            0x32 => values(fields.delimited()?, depth + 1, key_value)?,
            0x3a => drop(fields.delimited()?),
            _ => return None,
        }
    }
    Some(())
}

/// A list of values, or of pairs of a key and a value.
fn values(message: &[u8], depth: u8, each: fn(&[u8], u8) -> Checked) -> Checked {
    if depth > DEEPEST {
        return None;
    }
    let mut fields = Fields::of(message);
    while let Some(tag) = fields.byte() {
        match tag {
            0x0a => each(fields.delimited()?, depth)?,
            _ => return None,
        }
    }
    Some(())
}

pub fn text(bytes: &[u8]) -> Checked {
    std::str::from_utf8(bytes).ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span_with(rest: &[u8]) -> Option<bool> {
        let mut message = vec![0x0a, 16];
        message.extend([1; 16]);
        message.extend([0x12, 8, 1, 1, 1, 1, 1, 1, 1, 1]);
        message.extend(rest);
        span(&message)
    }

    #[test]
    fn times_that_tell_no_duration_are_odd() {
        let times = |start: u64, end: u64| {
            let mut rest = vec![0x39];
            rest.extend(start.to_le_bytes());
            rest.push(0x41);
            rest.extend(end.to_le_bytes());
            span_with(&rest)
        };
        assert_eq!(times(1, 1), Some(false));
        assert_eq!(times(2, 1), Some(true));
        assert_eq!(times(0, 1), Some(true));
        assert_eq!(times(1, 0), Some(true));
        assert_eq!(span_with(&[]), Some(true));
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        assert_eq!(span_with(&[0x2a, 1, 0xff]), None, "no UTF-8");
        assert_eq!(span_with(&[0x7a, 0, 0x7a, 0]), None, "two statuses");
        assert_eq!(span_with(&[0x28, 1]), None, "a name that is a number");
        assert_eq!(span_with(&[0x0a, 0]), None, "another trace id");
        assert_eq!(span_with(&[0xf8, 1, 0]), None, "a field nobody knows");
        assert_eq!(span_with(&[0x2a, 2, b'a']), None, "cut off");
    }

    #[test]
    fn values_nest_only_so_deep() {
        let nested = |levels: usize| {
            let mut message = vec![0x18, 1];
            for _ in 0..levels {
                for tag in [0x0a, 0x2a] {
                    let length = u8::try_from(message.len()).unwrap();
                    message.splice(0..0, [tag, length]);
                }
            }
            value(&message, 0)
        };
        assert_eq!(nested(usize::from(DEEPEST)), Some(()));
        assert_eq!(nested(usize::from(DEEPEST) + 1), None);
    }
}
