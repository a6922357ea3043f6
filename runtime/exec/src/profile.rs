//! What every step of a run took: when it began, how long it lasted, how many bytes were held behind it.
//!
//! Every site notes its own steps; at the end site 0 is given all of them. A run of many steps keeps the first ones one by one
//! and counts all. Must not know what is made of it.
//!
//! ```text
//! site 0: step 3 of plan 0: 120 times, 1.2 s in all, at most 40 MB held; first from 0.100 s to 0.110 s, …
//! ```

use crate::error::RunError;
use crate::meet::share_numbers;
use ein_array::{Array, Data};
use ein_comm::Communicator;
use ein_device::BufferType;
use ein_plan::DType;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most steps of a site that are kept one by one.
const MOST: usize = 200_000;

/// What is noted of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Note {
    /// Nothing.
    #[default]
    Nothing,
    /// What each step of a plan took in all.
    Totals,
    /// Also when it was taken each time.
    Steps,
}

/// One time that a step was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which of the run's plans.
    pub plan: u32,
    /// Which step of it; of a sweep the last one.
    pub step: u32,
    /// Nanoseconds from the beginning of site 0 to that of the step.
    pub start: i64,
    /// Nanoseconds that it lasted.
    pub length: i64,
}

/// A step, every time that it was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How often.
    pub times: i64,
    /// Nanoseconds in all.
    pub length: i64,
    /// The most bytes that were held when it had been taken.
    pub held: i64,
}

/// The steps of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteProfile {
    /// In the order in which they were taken.
    pub slices: Vec<Slice>,
    /// By plan and step.
    pub totals: BTreeMap<(u32, u32), Total>,
    /// How many further steps were taken, of which there is no slice.
    pub left_out: i64,
}

/// A run's, by site.
pub type Profile = Vec<SiteProfile>;

/// Notes the steps of one site.
pub(crate) struct Recorder {
    note: Note,
    began: Instant,
    /// By the system's clock, in nanoseconds.
    began_at: i64,
    own: Mutex<SiteProfile>,
}

impl Recorder {
    pub fn new(note: Note) -> Recorder {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Recorder {
            note,
            began: Instant::now(),
            began_at: now.map_or(0, |now| now.as_nanos() as i64),
            own: Mutex::default(),
        }
    }

    /// A step begins, if anything is noted.
    pub fn begins(&self) -> Option<Instant> {
        (self.note != Note::Nothing).then(Instant::now)
    }

    /// The step that began then has been taken; so many bytes are held.
    pub fn ends(&self, (plan, step): (u32, usize), began: Option<Instant>, held: u64) {
        let Some(began) = began else { return };
        let length = began.elapsed().as_nanos() as i64;
        let mut own = self.own();
        let total = own.totals.entry((plan, step as u32)).or_default();
        total.times += 1;
        total.length += length;
        total.held = total.held.max(held as i64);
        if self.note == Note::Steps {
            if own.slices.len() < MOST {
                own.slices.push(Slice {
                    plan,
                    step: step as u32,
                    start: (began - self.began).as_nanos() as i64,
                    length,
                });
            } else {
                own.left_out += 1;
            }
        }
    }

    fn own(&self) -> MutexGuard<'_, SiteProfile> {
        // It is valid after every single statement that holds the lock.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sites' steps, at site 0; nothing elsewhere, or if nothing was noted. Every site calls it.
    pub fn gathered(&self, comm: &dyn Communicator) -> Result<Option<Profile>, RunError> {
        if self.note == Note::Nothing {
            return Ok(None);
        }
        let own = std::mem::take(&mut *self.own());
        let counts = vec![
            own.slices.len() as i64,
            own.totals.len() as i64,
            own.left_out,
            self.began_at,
        ];
        let all = share_numbers(comm, counts)?;
        let mut numbers: Vec<i64> = vec![];
        for slice in &own.slices {
            let of = [i64::from(slice.plan), i64::from(slice.step)];
            numbers.extend(of);
            numbers.extend([slice.start, slice.length]);
        }
        for ((plan, step), total) in &own.totals {
            let of = [i64::from(*plan), i64::from(*step)];
            numbers.extend(of);
            numbers.extend([total.times, total.length, total.held]);
        }
        let length = |counts: &[i64]| (4 * counts[0] + 5 * counts[1]) as usize;
        let kind = |n: usize| BufferType::dense(DType::I64, vec![n]);
        let array = Array::new(vec![numbers.len()], Data::I64(numbers))
            .ok_or_else(|| RunError::internal("a list has as many numbers as it has"))?;
        let mut outgoing = vec![vec![]; comm.sites() as usize];
        outgoing[0] = vec![array.into()];
        let first = comm.site() == 0;
        let incoming: Vec<Vec<BufferType>> = (all.iter())
            .map(|counts| {
                if first {
                    vec![kind(length(counts))]
                } else {
                    vec![]
                }
            })
            .collect();
        let arrived = comm.exchange(outgoing, &incoming)?;
        if !first {
            return Ok(None);
        }
        // Times are from the beginning of the site that began first.
        let beginning = all.iter().map(|counts| counts[3]).min().unwrap_or(0);
        let sites = all.iter().zip(&arrived).map(|(counts, arrays)| {
            let arrived = arrays.first().map(|buffer| buffer.to_host());
            let numbers = match arrived.as_ref().map(|array| array.data()) {
                Some(Data::I64(numbers)) => &numbers[..],
                _ => &[],
            };
            let (slices, totals) = numbers.split_at((4 * counts[0]) as usize);
            let later = counts[3] - beginning;
            SiteProfile {
                slices: (slices.chunks_exact(4))
                    .map(|n| Slice {
                        plan: n[0] as u32,
                        step: n[1] as u32,
                        start: n[2] + later,
                        length: n[3],
                    })
                    .collect(),
                totals: (totals.chunks_exact(5))
                    .map(|n| {
                        let total = Total {
                            times: n[2],
                            length: n[3],
                            held: n[4],
                        };
                        ((n[0] as u32, n[1] as u32), total)
                    })
                    .collect(),
                left_out: counts[2],
            }
        });
        Ok(Some(sites.collect()))
    }
}
