//! The part of a conversion that goes between nodes, where a mesh lies over several.
//!
//! Values go straight from the site that holds them to the one that wants them. So along an axis inside a node nothing leaves it; along one over
//! b nodes, 1 of b parts is in the node already, and the rest comes over its link, for every site of the node. A single holder sends all that
//! other nodes want over the link of its own node. Must not know seconds.
//!
//! ```text
//! mesh 4x8, 8 sites a node, 3200 floats: (Every, Cut(0)) -> (Every, Every)   nothing
//! (Cut(0), Every) -> (Every, Every)   each site 2400 from 3 other nodes, 19200 over the link of a node
//! ```

use super::convert::{convert, share};
use super::machine::Levels;
use super::mesh::AXES;
use super::transfer::{Counts, Far, Move, Roles, TransferItem, is_windowed};
use super::windows::{self, SiteBoxes};
use crate::ia::layout::TensorRole;

/// [`convert`], with what goes between nodes if the mesh lies over several.
pub fn convert_over(
    goods: TransferItem<'_>,
    counts: Counts,
    levels: Option<&Levels>,
    from: Roles,
    to: Roles,
) -> Option<Move> {
    let moved = convert(goods, counts, from, to)?;
    let Some(levels) = levels.filter(|_| moved != Move::default()) else {
        return Some(moved);
    };
    let far = match is_windowed(to) {
        false => far(goods, counts, levels, from, to),
        true => {
            let held = SiteBoxes::held(goods.shape, counts, from);
            let needed = SiteBoxes::needed(goods, counts, to);
            windows::far(&held, &needed, levels)
        }
    };
    Some(Move { far, ..moved })
}

/// Returns what goes between nodes in a conversion to a placement that is not one of windows.
pub fn far(
    goods: TransferItem<'_>,
    counts: Counts,
    levels: &Levels,
    from: Roles,
    to: Roles,
) -> Far {
    use TensorRole::{Every, First, Partial};
    let mut sliced = from;
    for (role, wanted) in sliced.iter_mut().zip(to) {
        if *role == Every {
            *role = wanted;
        }
    }
    let axes = |chosen: &dyn Fn(TensorRole, TensorRole) -> bool| -> Vec<usize> {
        let all = 0..AXES;
        all.filter(|axis| chosen(sliced[*axis], to[*axis]))
            .collect()
    };
    let added = axes(&|from, _| from == Partial);
    let changed = |from, to| from != to && from != Every;
    // Addends go straight to the pieces that they are added up in, and what is wanted everywhere is gathered from there.
    let (meeting, gathered) = match added[..] {
        [] => (vec![], axes(&changed)),
        _ => (
            axes(&|from, to| from == Partial || (changed(from, to) && to != Every)),
            axes(&|from, to| changed(from, to) && to == Every),
        ),
    };
    let single = axes(&|from, to| from == First && to != First);
    let (added, meeting) = (levels.along(&added), levels.along(&meeting));
    let gathered = levels.along(&gathered);
    let wanted = share(goods.shape, counts, to);
    let addends = match added.sites > 1.0 {
        true => added.sites * goods.columns * wanted / gathered.sites,
        false => 0.0,
    };
    // A node without the single holder has nothing of it.
    let nodes: u32 = single.iter().map(|axis| levels.across[*axis]).product();
    let (missing, missing_of_node) = match nodes {
        1 => (1.0 - gathered.near / gathered.sites, gathered.far_of_node),
        _ => (1.0, f64::from(levels.sites) * f64::from(nodes - 1)),
    };
    let idle = axes(&|_, to| to == First).into_iter();
    let idle: f64 = idle.map(|axis| f64::from(levels.inside[axis])).product();
    Far {
        words: addends * (1.0 - meeting.near / meeting.sites) + wanted * missing,
        messages: meeting.sites - meeting.near + gathered.sites - gathered.near,
        words_of_node: (addends * meeting.far_of_node + wanted * missing_of_node) / idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Rates;
    use crate::search::machine::{Link, Network, TimeModel};
    use TensorRole::{Cut, Every, First, Partial};

    fn of(axes: Counts, sites: u32, from: [TensorRole; 2], to: [TensorRole; 2]) -> [f64; 3] {
        let link = Link {
            message: 1.0,
            byte: 1.0,
        };
        let model = TimeModel {
            compute: Rates {
                operation: 1.0,
                touched: 1.0,
                tuple: 1.0,
                element: 1.0,
                place: 1.0,
            },
            node: link,
            network: Some(Network { sites, link }),
        };
        let goods = TransferItem {
            shape: &[160, 20],
            columns: 1.0,
            windows: &[],
        };
        let roles = |[x, y]: [TensorRole; 2]| [x, y, Every];
        let levels = model.levels(axes);
        let moved = convert_over(goods, axes, levels.as_ref(), roles(from), roles(to));
        let Far {
            words,
            messages,
            words_of_node,
        } = moved.map_or(Far::default(), |moved| moved.far);
        [words, messages, words_of_node]
    }

    #[test]
    fn collectives_are_split_between_the_levels() {
        let mesh = [4, 8, 1];
        let far = |from, to| of(mesh, 8, from, to);
        // All-gathers inside a node, over nodes, and in both.
        assert_eq!(far([Every, Cut(0)], [Every, Every]), [0.0, 0.0, 0.0]);
        assert_eq!(far([Cut(0), Every], [Every, Every]), [2400.0, 3.0, 19200.0]);
        assert_eq!(
            far([Cut(0), Cut(0)], [Every, Every]),
            [2400.0, 24.0, 19200.0]
        );
        // Reduce-scatters, and an all-reduce, which is one and an all-gather.
        assert_eq!(far([Every, Partial], [Every, Cut(0)]), [0.0, 0.0, 0.0]);
        assert_eq!(
            far([Partial, Every], [Cut(0), Every]),
            [2400.0, 3.0, 19200.0]
        );
        assert_eq!(
            far([Partial, Every], [Every, Every]),
            [4800.0, 6.0, 38400.0]
        );
        // Each site wants an eighth, of which its node has a fourth.
        let cut = [Every, Cut(1)];
        assert_eq!(far([Cut(0), Every], [Cut(1), Every]), [600.0, 3.0, 4800.0]);
        assert_eq!(far([Every, Cut(0)], cut), [0.0, 0.0, 0.0]);
        // A single holder sends to the sites of three nodes.
        assert_eq!(far([First, Every], [Every, Every]), [3200.0, 3.0, 76800.0]);
        assert_eq!(far([Every, First], [Every, Every]), [0.0, 0.0, 0.0]);
        // An axis that is partly both: two of eight coordinates are in a node.
        let far = |from, to| of([8, 4, 1], 8, from, to);
        assert_eq!(far([Cut(0), Every], [Every, Every]), [2400.0, 6.0, 19200.0]);
    }
}
