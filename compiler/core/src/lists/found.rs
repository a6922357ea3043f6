//! Elements of a list at the places of another: each is looked for in its list.
//!
//! A place has a *key*: its row-major number in the tensor. Keys of a list ascend. Must not know how a statement comes to go over a list.
//!
//! ```text
//! s: f32[] = [| e: 5] sum A.values[e] * B[A.at0[e], A.at1[e]]                       with 7 elements of B: f32[9, 8] listed
//!
//! B.key: i64[7] = [f: 7] B.at0[f] * 8 + B.at1[f]
//! A.key: i64[5] = [e: 5] A.at0[e] * 8 + A.at1[e]
//! B.place: i64[5] = [e: 5] find(B.key[:1], A.key[e])
//! B.found: f32[5] = [e: 5] (B.values[B.place[e]] else 0.0)
//! ```

use super::statement::OverList;
use super::{List, Lists, PatternId, elements, written};
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::rules::free_index;
use ein_plan::{Index, IndexId, Node, Origin};

impl Lists {
    /// The values of a list's tensor at the places of another pattern, which stand for some of its dimensions, all listed ones among them.
    pub(super) fn found_at(
        &mut self,
        (name, origin): (&str, Origin),
        list: &List,
        pattern: PatternId,
        dims: &[Option<usize>],
    ) -> Option<TensorId> {
        let own = self.pattern(list.pattern);
        // Of places with the same key the first one has the value, unless they fill a list up.
        if !own.ascends || elements(&own.shape) > i64::MAX as u64 {
            return None;
        }
        let mut at = vec![None; own.shape.len()];
        for (listed, dim) in list.dims.iter().zip(dims) {
            if let Some(listed) = listed {
                at[*listed] = Some((*dim)?);
            }
        }
        let at: Vec<usize> = at.into_iter().collect::<Option<_>>()?;
        let all: Vec<usize> = (0..at.len()).collect();
        let keys = self.keys((name, origin), list.pattern, (list.pattern, &all));
        let wanted = self.keys((name, origin), list.pattern, (pattern, &at));
        let (listed, count) = (
            self.pattern(list.pattern).count,
            self.pattern(pattern).count,
        );
        let find = written(&format!(
            "(i64[{listed}], i64[{count}]) [e: {count}] i64 = find(a0[:1], a1[e])"
        ));
        let find = statement(find, &[keys, wanted]);
        let place = self.made(&format!("{name}.place"), find, origin);
        Some(self.values_found((name, origin), list, place, (pattern, dims)))
    }

    /// The keys that places have in the tensor of a pattern `of`: its own, or those of another pattern, whose dimensions stand for its own. A
    /// place outside of the tensor has the key -1.
    pub(super) fn keys(
        &mut self,
        (name, origin): (&str, Origin),
        of: PatternId,
        (pattern, at): (PatternId, &[usize]),
    ) -> TensorId {
        let (own, places) = (self.pattern(of), self.pattern(pattern));
        let count = places.count;
        let (mut key, mut inside): (String, Option<String>) = (String::new(), None);
        for (number, (extent, dim)) in own.shape.iter().zip(at).enumerate() {
            key = match number {
                0 => format!("a{number}[e]"),
                _ => format!("({key}) * {extent} + a{number}[e]"),
            };
            if places.shape[*dim] > *extent {
                let own = format!("a{number}[e] < {extent}");
                inside = Some(match inside {
                    None => own,
                    Some(others) => format!("and({others}, {own})"),
                });
            }
        }
        if let Some(inside) = inside {
            key = format!("where({inside}, {key}, -1)");
        }
        let columns: Vec<String> = (at.iter())
            .map(|dim| format!("{}[{count}]", places.position_type(*dim).name()))
            .collect();
        let columns = columns.join(", ");
        let kernel = written(&format!("({columns}) [e: {count}] i64 = {key}"));
        let positions: Vec<TensorId> = at.iter().map(|dim| places.positions[*dim]).collect();
        self.made(
            &format!("{name}.key"),
            statement(kernel, &positions),
            origin,
        )
    }

    /// The values that are found at places of the list, and the number everywhere else where there is none.
    fn values_found(
        &mut self,
        (name, origin): (&str, Origin),
        list: &List,
        place: TensorId,
        (pattern, dims): (PatternId, &[Option<usize>]),
    ) -> TensorId {
        let values = self.rewriting.result().tensor(list.values);
        let (stored, shape) = (values.dtype, values.shape.clone());
        let pattern = self.pattern(pattern);
        let mut indices = vec![Index {
            name: "e".to_owned(),
            extent: pattern.count,
        }];
        let mut free = vec![];
        let dense = dims.iter().zip(&list.dims).filter(|(_, dim)| dim.is_none());
        for ((dim, _), extent) in dense.zip(&shape[1..]) {
            free.push(match dim {
                Some(dim) => Err(*dim),
                None => {
                    let name = free_index(&indices);
                    indices.push(Index {
                        name,
                        extent: *extent,
                    });
                    Ok(IndexId(indices.len() as u32 - 1))
                }
            });
        }
        let rank = indices.len() as u32;
        let mut over = OverList::new(indices, rank, stored, IndexId(0));
        let at = over.read(
            place,
            ein_plan::DType::I64,
            vec![pattern.count],
            vec![],
            None,
        );
        let further = free.into_iter().map(|index| match index {
            Ok(index) => over.index(index),
            Err(dim) => over.position(pattern, dim),
        });
        let positions = std::iter::once(at).chain(further.collect::<Vec<_>>());
        let fill = Node::Constant(list.fill);
        let fill = over.kernel.graph.add(fill, stored.compute());
        over.kernel.root = over.read_at(
            (list.values, stored, shape),
            positions.collect(),
            Some(fill),
        );
        let over = statement(over.kernel, &over.operands);
        self.made(&format!("{name}.found"), over, origin)
    }
}
