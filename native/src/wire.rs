//! Protobuf's wire, field by field. `None` means everywhere: look yourself.

/// What is left of a message.
#[derive(Clone, Copy)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Fields(message)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// The next field's tag of one byte, without going past it.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next byte: of a tag.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// So many bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of at most ten bytes and 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// What stands behind its length, which is written in as few bytes as it takes.
    #[inline]
    pub fn delimited(&mut self) -> Option<&'a [u8]> {
        let before = self.left();
        let length = usize::try_from(self.varint()?).ok()?;
        let prefix = before - self.left();
        if prefix > 1 && length >> (7 * (prefix - 1)) == 0 {
            return None;
        }
        self.take(length)
    }

    #[inline]
    pub fn fixed64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    #[inline]
    pub fn fixed32(&mut self) -> Option<&'a [u8]> {
        self.take(4)
    }

    /// Past a span's field whose tag begins with this byte: one of number 1 to 15, or the flags.
    #[inline]
    pub fn skip(&mut self, tag: u8) -> Option<()> {
        match tag {
            0x85 if self.byte()? == 1 => drop(self.fixed32()?),
            0x08..=0x7f => match tag & 7 {
                0 => drop(self.varint()?),
                1 => drop(self.fixed64()?),
                2 => drop(self.delimited()?),
                5 => drop(self.fixed32()?),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn numbers_have_ten_bytes_and_64_bits() {
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Fields::of(&most).varint(), Some(u64::MAX));
        assert_eq!(Fields::of(&[0xac, 2]).varint(), Some(300));
        let mut more = most;
        more[9] = 2;
        assert_eq!(Fields::of(&more).varint(), None);
        assert_eq!(Fields::of(&[0x80; 11]).varint(), None);
        assert_eq!(Fields::of(&[0x80]).varint(), None);
    }

    #[test]
    fn a_length_is_written_in_as_few_bytes_as_it_takes() {
        assert_eq!(Fields::of(&[1, 7]).delimited(), Some(&[7][..]));
        assert_eq!(Fields::of(&[0x81, 0, 7]).delimited(), None);
        assert_eq!(Fields::of(&[2, 7]).delimited(), None);
    }
}
