//! The functions as Python sees them.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cut;

/// Bytes of a request from which on another thread may run while it is checked: podtrail reads such a request in a
/// thread. A smaller one is read on the event loop, which would wait up to 5 ms to go on.
const LARGE: usize = 1 << 20;

/// Resource, scope, trace id, spans and how many.
type Group<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize);

fn check_and_cut_in<'py>(py: Python<'py>, request: &[u8]) -> Option<(Vec<Group<'py>>, usize)> {
    let found = if request.len() < LARGE { cut::cut(request)? } else { py.detach(|| cut::cut(request))? };
    let bytes = |range: &Range<usize>| PyBytes::new(py, &request[range.clone()]);
    let header = |of: &cut::Header| {
        if of.behind.is_empty() {
            bytes(&of.before)
        } else {
            PyBytes::new(py, &[&request[of.before.clone()], &request[of.behind.clone()]].concat())
        }
    };
    let resources: Vec<_> = found.resources.iter().map(header).collect();
    let scopes: Vec<_> = found.scopes.iter().map(header).collect();
    let groups = found.runs.iter().map(|run| {
        (resources[run.resource].clone(), scopes[run.scope].clone(), bytes(&run.trace_id), bytes(&run.spans), run.count)
    });
    Some((groups.collect(), found.odd_times))
}

#[pymodule]
mod podtrail_native {
    use super::{check_and_cut_in, Group};
    use crate::{facts, search};
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// What podtrail asks for when it loads this: raised when a function, or what it answers, changes.
    #[pymodule_export]
    const INTERFACE: u32 = 4;

    /// Return the groups of a serialized `ExportTraceServiceRequest` and how many spans tell no duration.
    ///
    /// None for a request of which anything is unusual.
    #[pyfunction]
    fn check_and_cut<'py>(py: Python<'py>, request: &Bound<'py, PyBytes>) -> Option<(Vec<Group<'py>>, usize)> {
        check_and_cut_in(py, request.as_bytes())
    }

    /// Return the earliest start, the latest end (Unix nanoseconds), which status codes framed spans have, and their
    /// `KeyValue` messages that have one of these keys.
    ///
    /// Codes as a sum: 1 unset, 2 ok, 4 error. None where a span lacks a time, or anything is unusual.
    #[pyfunction]
    #[allow(clippy::needless_pass_by_value)] // it is made of what Python hands over
    fn trace_facts<'py>(
        py: Python<'py>,
        spans: &Bound<'py, PyBytes>,
        keys: Vec<Bound<'py, PyBytes>>,
    ) -> Option<(u64, u64, u8, Vec<Bound<'py, PyBytes>>)> {
        let keys: Vec<_> = keys.iter().map(PyBytesMethods::as_bytes).collect();
        let found = facts::facts(spans.as_bytes(), &keys)?;
        let attributes = found.attributes.into_iter().map(|pair| PyBytes::new(py, pair)).collect();
        Some((found.first, found.last, found.statuses, attributes))
    }

    /// Return whether one of framed spans has no parent; None where anything is unusual.
    #[pyfunction]
    fn has_root(spans: &Bound<'_, PyBytes>) -> Option<bool> {
        facts::has_root(spans.as_bytes())
    }

    /// Return where a mark stands first, at `start` or behind it; -1 where it does not: what `bytes.find` does.
    #[pyfunction]
    fn find(data: &Bound<'_, PyBytes>, mark: &Bound<'_, PyBytes>, start: usize) -> isize {
        let found = search::find(data.as_bytes(), mark.as_bytes(), start);
        found.map_or(-1, |at| isize::try_from(at).expect("no object is larger"))
    }

    /// Return the ids of at most `most` traces that framed spans link to, found by what a link looks like.
    #[pyfunction]
    fn linked_traces<'py>(py: Python<'py>, spans: &Bound<'py, PyBytes>, most: usize) -> Vec<Bound<'py, PyBytes>> {
        search::linked_traces(spans.as_bytes(), most).into_iter().map(|id| PyBytes::new(py, id)).collect()
    }

    /// Return the FNV-1a hash of 64 bits; `state` is the hash of what stands before these bytes.
    #[pyfunction]
    fn fnv1a(data: &Bound<'_, PyBytes>, state: u64) -> u64 {
        search::fnv1a(data.as_bytes(), state)
    }
}
