//! Windows: which parts of a relation's tuples make up the windows of another one, and what of them a site lacks.
//!
//! A tuple of the result is a box of the whole tensor. It is put together of the parts that the input's tuples, which are disjoint
//! boxes, have in common with it. A site takes the parts of tuples that it holds; each other part comes from the holder that agrees
//! with the site on as many coordinates as possible. Must not know transports, nor who reads the windows.
//!
//! ```text
//! x {i: 8/2} f32[i] @ PART(i)  to  {i: 8/2} f32[i-1..i+1 of 8] @ PART(i)
//! site 0 holds 0..=3, wants 0..=4, lacks 4;  site 1 holds 4..=7, wants 3..=7, lacks 3
//! ```

use crate::mesh::Mesh;
use crate::relation::{RelationType, piece, sender};

/// What a tuple of an input and a tuple of the result have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPart {
    /// The key of the input's tuple.
    pub from: Vec<u32>,
    /// By array dimension: the first position, in the whole tensor.
    pub start: Vec<u64>,
    /// By array dimension: how many positions.
    pub lengths: Vec<u64>,
}

impl WindowPart {
    /// Number of positions.
    pub fn elements(&self) -> u64 {
        self.lengths.iter().product()
    }
}

/// Where a part comes from, for a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The site holds it.
    Here,
    /// It is sent by this site.
    Site(u32),
}

/// The parts that make up the tuple of `kind` with this key, in the order of the input's keys. Windows are taken of pieces, and of
/// the whole tensor ([`crate::verify::windows`]).
pub fn parts(input: &RelationType, kind: &RelationType, key: &[u32]) -> Vec<WindowPart> {
    let wanted = kind.ranges(key);
    if wanted.iter().any(|(_, length)| *length == 0) {
        return vec![];
    }
    // By key dimension of the input: the coordinates whose pieces meet what is wanted.
    let mut along = vec![0..=0u32; input.keys.len()];
    for (dim, (start, length)) in input.array.dims.iter().zip(&wanted) {
        if let Some(cut) = dim.cut {
            let pieces = input.keys[cut as usize].pieces;
            let of = |position| piece_of(dim.extent, pieces, position);
            along[cut as usize] = of(*start)..=of(start + length - 1);
        }
    }
    let mut keys = vec![vec![]];
    for coordinates in along {
        let longer = keys.iter().flat_map(|key: &Vec<u32>| {
            coordinates.clone().map(move |coordinate| {
                let mut key = key.clone();
                key.push(coordinate);
                key
            })
        });
        keys = longer.collect();
    }
    let part = |from: Vec<u32>| {
        let common = input.ranges(&from).into_iter().zip(&wanted);
        let common = common.map(|((a, n), (b, m))| {
            let start = a.max(*b);
            (start, (a + n).min(b + m).saturating_sub(start))
        });
        let (start, lengths) = common.unzip();
        WindowPart {
            from,
            start,
            lengths,
        }
    };
    let parts = keys.into_iter().map(part);
    parts.filter(|part| part.elements() > 0).collect()
}

/// Where a site gets a part from.
pub fn origin(input: &RelationType, part: &WindowPart, site: u32, mesh: &Mesh) -> Origin {
    match input.holds(&part.from, site, mesh) {
        true => Origin::Here,
        false => Origin::Site(sender(&input.coordinates(&part.from, mesh), site, mesh)),
    }
}

/// By site of the mesh: how many elements of a column are sent to it for its windows.
pub fn lacking(input: &RelationType, kind: &RelationType, mesh: &Mesh) -> Vec<u64> {
    let of_site = |site: u32| {
        let parts = kind
            .keys_at(site, mesh)
            .flat_map(|key| parts(input, kind, &key));
        let sent = parts.filter(|part| !input.holds(&part.from, site, mesh));
        sent.fold(0u64, |sum, part| sum.saturating_add(part.elements()))
    };
    (0..mesh.sites()).map(of_site).collect()
}

/// The number of the piece that holds a position below `extent`.
fn piece_of(extent: u64, pieces: u32, position: u64) -> u32 {
    let (short, longer) = (extent / u64::from(pieces), extent % u64::from(pieces));
    let in_longer = longer * (short + 1);
    let number = match position < in_longer {
        true => position / (short + 1),
        // There are positions behind the longer pieces, so the others are not empty.
        false => longer + (position - in_longer) / short.max(1),
    };
    debug_assert!({
        let (start, length) = piece(extent, pieces, number as u32);
        (start..start + length).contains(&position)
    });
    number as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kind(text: &str) -> RelationType {
        let kind: RelationType = text.parse().unwrap();
        assert_eq!(kind.to_string(), text);
        kind
    }

    #[test]
    fn sites_lack_what_they_do_not_hold() {
        let row = Mesh::row(4);
        let lacks = |from: &str, to: &str| lacking(&kind(from), &kind(to), &row);
        let rows = "{i: 10/4} f32[i, 6] @ PART(i)";
        // Pieces of 3, 3, 2 and 2 rows; the edges of neighbours.
        let edges = "{i: 10/4} f32[i-1..i+1 of 10, 6] @ PART(i)";
        assert_eq!(lacks(rows, edges), [6, 12, 12, 6]);
        assert_eq!(lacks("{} f32[10, 6] @ ALL", edges), [0; 4]);
        assert_eq!(lacks("{} f32[10, 6] @ ONE", edges), [0, 30, 24, 18]);
        // The first three rows, to every site and to one.
        assert_eq!(lacks(rows, "{} f32[0..2 of 10, 6] @ ALL"), [0, 18, 18, 18]);
        assert_eq!(lacks(rows, "{} f32[2..4 of 10, 6] @ ONE"), [12, 0, 0, 0]);
        // The other way round: 9 8 7, 6 5 4, 3 2, 1 0.
        let reversed = "{i: 10/4} f32[-i+9..-i+9 of 10, 6] @ PART(i)";
        assert_eq!(lacks(rows, reversed), [18, 6, 12, 12]);
        // Every second row, and the next one.
        let strided = "{i: 5/4} f32[2*i..2*i+1 of 10, 6] @ PART(i)";
        assert_eq!(lacks(rows, strided), [6, 0, 0, 0]);
        // A matrix of four rows as a vector of pieces 0..=5, 6..=11, 12..=16 and 17..=21, and the neighbours of each piece.
        let matrix = "{q: 4/4} f32[q, 6] @ PART(q)";
        let vector = "{i: 24/4} f32[i/6..i/6 of 4, 6] @ PART(i)";
        assert_eq!(lacks(matrix, vector), [0; 4]);
        let around = "{i: 22/4} f32[(i-1)/6..(i+1)/6 of 4, 6] @ PART(i)";
        assert_eq!(lacks(matrix, around), [6, 12, 6, 6]);
        // A diagonal of what is cut by rows is there.
        let square = "{i: 10/4} f32[i, 10] @ PART(i)";
        let diagonal = "{i: 10/4} f32[i..i of 10, i..i of 10] @ PART(i)";
        assert_eq!(lacks(square, diagonal), [0; 4]);
        // Of one that is cut by columns, too; of one in tiles not.
        assert_eq!(lacks("{j: 10/4} f32[10, j] @ PART(j)", diagonal), [0; 4]);
        let thirds = "{j: 10/3} f32[10, j] @ PART(j)";
        assert!(lacks(thirds, diagonal).iter().sum::<u64>() > 0);
    }

    #[test]
    fn windows_on_a_mesh_have_corners() {
        let mesh = Mesh { axes: vec![2, 2] };
        let tiles = kind("{i: 8/2, j: 6/2@y} f32[i, j] @ GRID(i, j)");
        let around = kind("{i: 8/2, j: 6/2@y} f32[i-1..i+1 of 8, j-1..j+1 of 6] @ GRID(i, j)");
        assert_eq!(lacking(&tiles, &around, &mesh), [4 + 3 + 1; 4]);
        let parts = parts(&tiles, &around, &[0, 0]);
        let sizes: Vec<(Vec<u32>, u64)> = parts
            .iter()
            .map(|p| (p.from.clone(), p.elements()))
            .collect();
        let expected = [
            (vec![0, 0], 12),
            (vec![0, 1], 4),
            (vec![1, 0], 3),
            (vec![1, 1], 1),
        ];
        assert_eq!(sizes, expected);
        assert_eq!(origin(&tiles, &parts[0], 0, &mesh), Origin::Here);
        assert_eq!(origin(&tiles, &parts[3], 0, &mesh), Origin::Site(3));
    }

    #[test]
    fn positions_are_in_their_pieces() {
        for (extent, pieces) in [(10, 4), (3, 5), (1, 1), (64, 64), (7, 2)] {
            for position in 0..extent {
                let number = piece_of(extent, pieces, position);
                let (start, length) = piece(extent, pieces, number);
                assert!((start..start + length).contains(&position));
            }
        }
    }
}
