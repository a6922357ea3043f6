//! Meshes: the sites of a plan as a box of coordinates, at most three axes of it.
//!
//! A site's number is its coordinates in row-major order (the first axis varies slowest). Sites beyond the mesh
//! idle. Must not know relations.
//!
//! ```text
//! mesh 2x3 on 7 sites: site 4 is at (1, 1), site 6 idles
//! ```

use serde::{Deserialize, Serialize};

/// A mesh: the number of coordinates along each axis, each at least 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mesh {
    /// Coordinates along each axis.
    pub axes: Vec<u32>,
}

impl Mesh {
    /// All sites in a row.
    pub fn row(sites: u32) -> Mesh {
        Mesh { axes: vec![sites] }
    }

    /// Number of sites that take part.
    pub fn sites(&self) -> u32 {
        self.axes.iter().product()
    }

    /// Coordinates along an axis; 1 if there is no such axis.
    pub fn count(&self, axis: u8) -> u32 {
        self.axes.get(usize::from(axis)).copied().unwrap_or(1)
    }

    /// A site's coordinate along an axis; the site takes part.
    pub fn coordinate(&self, site: u32, axis: usize) -> u32 {
        let faster: u32 = self.axes[axis + 1..].iter().product();
        site / faster % self.axes[axis]
    }

    /// The site at these coordinates, one an axis.
    pub fn site(&self, coordinates: &[u32]) -> u32 {
        self.axes
            .iter()
            .zip(coordinates)
            .fold(0, |site, (count, at)| site * count + at)
    }
}

impl std::fmt::Display for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axes: Vec<String> = self.axes.iter().map(u32::to_string).collect();
        f.write_str(&axes.join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_and_coordinates_are_each_others_inverse() {
        let mesh = Mesh {
            axes: vec![2, 3, 4],
        };
        assert_eq!(mesh.sites(), 24);
        for site in 0..24 {
            let at: Vec<u32> = (0..3).map(|axis| mesh.coordinate(site, axis)).collect();
            assert_eq!(mesh.site(&at), site);
        }
        assert_eq!(mesh.to_string(), "2x3x4");
    }
}
