//! Dimensions whose range the statement itself does not say: other statements do, or its accesses, or it is an error.
//!
//! Must not know syntax.
//!
//! ```text
//! r[i] = x[N - 1 - i];  s[i] = r[i] + y[i]   ->   i < the size of y
//! ```

use crate::sema::{
    Checker,
    sizes::ranges::{Provisional, Reach, unknown_range},
    sizes::size::Size,
};
use einc_diag::Span;

impl Checker<'_> {
    /// The size of a tensor's dimension as far as other statements have told it.
    pub(crate) fn provisional_size(
        &mut self,
        tensor: &str,
        (index, span): (&str, Span),
        reach: Option<Reach>,
    ) -> Size {
        let dim = format!("{tensor}.{index}");
        match self.inference.inferred.get(&dim) {
            Some(size) => size.clone(),
            None => {
                let size = Size::dim(&dim);
                let index = index.to_owned();
                let provisional = Provisional { index, span, reach };
                self.inference.provisional.insert(dim, provisional);
                size
            }
        }
    }

    pub(crate) fn is_provisional(&self, size: &Size) -> bool {
        size.as_dim()
            .is_some_and(|dim| self.inference.provisional.contains_key(&*dim))
    }

    /// Notes what a dimension without a range is compared with.
    pub(crate) fn infer(&mut self, size: &Size, extent: &Size) {
        if let Some(dim) = size.as_dim()
            && self.inference.provisional.contains_key(&*dim)
            && !self.is_provisional(extent)
        {
            self.inference
                .found
                .entry(dim.to_string())
                .or_insert_with(|| extent.clone());
        }
    }

    /// Gives a dimension the range that the accesses of its statement allow, if no statement says another one.
    pub(crate) fn infer_from_accesses(&mut self) {
        if !self.inference.found.is_empty() {
            return;
        }
        for (dim, provisional) in &self.inference.provisional {
            if let Some(Reach::Whole(size)) = &provisional.reach {
                self.inference.found.insert(dim.clone(), size.clone());
            }
        }
    }

    /// Reports dimensions that no statement gives a range.
    pub(crate) fn report_provisional(&mut self) {
        for dimension in std::mem::take(&mut self.inference.provisional).into_values() {
            let Provisional { index, span, reach } = dimension;
            self.report
                .push(unknown_range(&index, span, reach.as_ref()));
        }
    }
}
