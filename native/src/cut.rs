//! A request checked and cut into runs of spans of one trace, as offsets into its own bytes.

use std::ops::Range;

use crate::check;
use crate::wire::Fields;

/// A message around others of its kind: what stands before and behind these is its header.
pub struct Header {
    pub before: Range<usize>,
    pub behind: Range<usize>,
}

/// Spans of one trace that stand side by side in one scope.
pub struct Run {
    /// Place of the resource's header in `Cut::resources`.
    pub resource: usize,
    /// Place of the scope's header in `Cut::scopes`.
    pub scope: usize,
    pub trace_id: Range<usize>,
    pub spans: Range<usize>,
    pub count: usize,
}

#[derive(Default)]
pub struct Cut {
    pub resources: Vec<Header>,
    pub scopes: Vec<Header>,
    pub runs: Vec<Run>,
    pub odd_times: usize,
    elements: usize,
    most: usize,
}

impl Cut {
    /// One more resource, scope or span: `None` when there are so many that nobody sends them in good faith.
    fn count(&mut self) -> Option<()> {
        self.elements += 1;
        (self.elements <= self.most).then_some(())
    }
}

const FIRST: u8 = 0x0a;
const SECOND: u8 = 0x12;
const SCHEMA_URL: u8 = 0x1a;
/// Tags of what recordings and stores write behind a request: fields 1000 to 1002, all with this second byte.
const ARRIVAL: u8 = 0xc1;
const CHECKSUM: u8 = 0xc9;
const NOTE: u8 = 0xd2;
const RECORDED: u8 = 0x3e;

const FEW_ELEMENTS: usize = 10_000;
const MOST_ELEMENTS: usize = 2_000_000;
/// Bytes of a request for each resource, scope and span: with fewer it is Python's to refuse.
const LEAST_BYTES: usize = 16;
const TRACE_ID_AT: usize = check::TRACE_ID.start;

/// What a request holds; `None` when anything in it is unusual.
pub fn cut(request: &[u8]) -> Option<Cut> {
    let most = FEW_ELEMENTS.max(MOST_ELEMENTS.min(request.len() / LEAST_BYTES));
    let mut found = Cut { most, ..Cut::default() };
    let mut fields = Fields::of(request);
    while let Some(tag) = fields.byte() {
        if tag == FIRST {
            let message = fields.delimited()?;
            let end = request.len() - fields.left();
            resource_spans(message, end - message.len(), &mut found)?;
        } else {
            if fields.byte()? != RECORDED {
                return None;
            }
            match tag {
                ARRIVAL | CHECKSUM => drop(fields.fixed64()?),
                NOTE => drop(fields.delimited()?),
                _ => return None,
            }
        }
    }
    Some(found)
}

fn resource_spans(message: &[u8], at: usize, found: &mut Cut) -> Option<()> {
    found.count()?;
    let mut fields = Fields::of(message);
    // Without a resource it would be an object of its own to tell it from its neighbours: that is Python's.
    if fields.byte()? != FIRST {
        return None;
    }
    check::resource(fields.delimited()?)?;
    let before = at..at + message.len() - fields.left();
    let place = found.resources.len();
    while fields.peek() == Some(SECOND) {
        fields.byte()?;
        let scope = fields.delimited()?;
        let end = at + message.len() - fields.left();
        scope_spans(scope, end - scope.len(), place, found)?;
    }
    let behind = schema_url(&mut fields, at + message.len())?;
    found.resources.push(Header { before, behind });
    Some(())
}

fn scope_spans(message: &[u8], at: usize, resource: usize, found: &mut Cut) -> Option<()> {
    found.count()?;
    let mut fields = Fields::of(message);
    if fields.peek() == Some(FIRST) {
        fields.byte()?;
        check::scope(fields.delimited()?)?;
    }
    let before = at..at + message.len() - fields.left();
    let scope = found.scopes.len();
    let mut trace_id: &[u8] = &[];
    while fields.peek() == Some(SECOND) {
        let begin = at + message.len() - fields.left();
        fields.byte()?;
        let span = fields.delimited()?;
        found.odd_times += usize::from(check::span(span)?);
        found.count()?;
        let end = at + message.len() - fields.left();
        let of = &span[check::TRACE_ID];
        match found.runs.last_mut() {
            Some(run) if of == trace_id => {
                run.spans.end = end;
                run.count += 1;
            }
            _ => {
                let id_at = end - span.len() + TRACE_ID_AT;
                trace_id = of;
                found.runs.push(Run {
                    resource,
                    scope,
                    trace_id: id_at..id_at + of.len(),
                    spans: begin..end,
                    count: 1,
                });
            }
        }
    }
    let behind = schema_url(&mut fields, at + message.len())?;
    found.scopes.push(Header { before, behind });
    Some(())
}

/// Where what is left of a message stands, which ends at `end`: its schema URL, or nothing.
fn schema_url(fields: &mut Fields, end: usize) -> Option<Range<usize>> {
    let begin = end - fields.left();
    if let Some(tag) = fields.byte() {
        if tag != SCHEMA_URL {
            return None;
        }
        check::text(fields.delimited()?)?;
    }
    (fields.left() == 0).then_some(begin..end)
}
