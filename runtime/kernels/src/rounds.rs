//! Loops of small steps, compiled: all rounds are one call.
//!
//! A round that faults is not made; whoever runs it makes that round step by step, and so finds what is wrong. Must not know plans, nor who
//! holds the arrays.
//!
//! ```text
//! state a = 0.5; next a = 3.9 * a * (1 - a), rounds 0..1000   ->   a after 1000 rounds, in some microseconds
//! ```
#![allow(unsafe_code)]

use crate::compiled::jit;
use crate::memo::Memo;
use crate::operations as op;
use crate::{Chunk, Options, Scheduled, execute};
use ein_array::{Array, Data};
use ein_fused::rounds::{Calls, function};
use ein_plan::small_rounds::{Ended, RoundsMade, SmallRounds};
use ein_plan::{DType, Function};

/// The code of all rounds (see [`ein_fused::rounds`]).
type Address = unsafe extern "C" fn(*const *mut u8, i64, i64) -> i64;

/// A called step gets these: the rounds, and the arrays from outside.
struct Handed<'r> {
    rounds: &'r CompiledRounds,
    /// By place: the array from outside that lies there.
    given: Vec<Option<&'r Array>>,
}

/// A loop whose rounds are compiled.
#[derive(Debug)]
pub struct CompiledRounds {
    rounds: SmallRounds,
    code: Address,
    /// By step: what is kept of one that is called.
    memos: Vec<Memo>,
}

impl CompiledRounds {
    /// Compiles a loop; none if this machine's compiler does not know an operation of it.
    pub fn compile(rounds: &SmallRounds) -> Option<CompiledRounds> {
        let calls = Calls {
            f32s: call_f32 as *const () as usize,
            f64s: call_f64 as *const () as usize,
            i32s: call_i32 as *const () as usize,
            i64s: call_i64 as *const () as usize,
            powers_f32: power_f32 as *const () as usize,
            powers_f64: power_f64 as *const () as usize,
            steps: step as *const () as usize,
        };
        let address = jit::function(|config| function(rounds, &calls, config))?;
        // SAFETY: the code at the address is a function of this signature; code is never freed.
        let code = unsafe { std::mem::transmute::<*const u8, Address>(address) };
        Some(CompiledRounds {
            rounds: rounds.clone(),
            code,
            memos: rounds.steps.iter().map(|_| Memo::default()).collect(),
        })
    }

    /// Makes the rounds from `first` on, until there are `most`. `given` are the arrays from outside, `states` those of the states, and
    /// `collected` those of all values that are collected, in the order of the loop's.
    ///
    /// # Panics
    /// An array is not of the type and the sizes of its place, or as many are not given as the loop has.
    pub fn run(
        &self,
        given: &[&Array],
        (states, collected): (&mut [&mut Array], &mut [&mut Array]),
        (first, most): (u64, u64),
    ) -> RoundsMade {
        let rounds = &self.rounds;
        let mut memory: Vec<Vec<u64>> = vec![vec![]; rounds.places.len()];
        let mut addresses: Vec<*mut u8> = vec![std::ptr::null_mut(); rounds.places.len()];
        let check = |array: &Array, place: usize| {
            let wanted = &rounds.places[place];
            let shape = array.shape().iter().map(|n| *n as u64);
            assert_eq!(array.data().dtype(), wanted.dtype, "the type of a place");
            assert!(
                shape.eq(wanted.shape.iter().copied()),
                "the sizes of a place"
            );
        };
        assert_eq!(given.len(), rounds.given.len(), "arrays from outside");
        let mut handed = Handed {
            rounds: self,
            given: vec![None; rounds.places.len()],
        };
        for (array, (_, place)) in given.iter().zip(&rounds.given) {
            check(array, *place);
            handed.given[*place] = Some(array);
            // The code does not write where it is given something.
            addresses[*place] = start(array.data()).cast_mut();
        }
        assert_eq!(states.len(), rounds.body.states.len(), "states");
        for (array, state) in states.iter_mut().zip(&rounds.body.states) {
            check(array, state.place);
            addresses[state.place] = start_mut(array.data_mut());
        }
        assert_eq!(collected.len(), rounds.body.collected.len(), "collected");
        for (array, (_, place)) in collected.iter_mut().zip(&rounds.body.collected) {
            check(array, *place);
            addresses[*place] = start_mut(array.data_mut());
        }
        // What rounds make in between, and arrays without elements, of which nothing is read: an address must be there all the same.
        for (place, address) in addresses.iter_mut().enumerate() {
            let bytes =
                rounds.places[place].elements() as usize * rounds.places[place].dtype.size();
            if address.is_null() || bytes == 0 {
                memory[place] = vec![0; bytes.div_ceil(8).max(1)];
                *address = memory[place].as_mut_ptr().cast();
            }
        }
        let mut ended = Ended::Most as i64;
        addresses.push((&raw mut ended).cast());
        addresses.push((&raw mut handed).cast());
        let [first, most] = [first, most].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let rooms = collected.iter();
        let most = rooms.fold(most, |most, room| most.min(room.shape()[0] as i64));
        // SAFETY: every place has an address of memory with its elements, of its type: arrays that were checked, which nobody else uses
        // meanwhile where they are written, or memory of this call; positions are checked by the code, and rounds end before what is
        // collected is full. What is handed to steps that are called is there until the code is left.
        let made = unsafe { (self.code)(addresses.as_ptr(), first, most) };
        let all = [Ended::Most, Ended::Until, Ended::Fault];
        let ended = all.into_iter().find(|one| *one as i64 == ended);
        let inner = rounds.inner.iter().map(|(_, total)| memory[*total][0]);
        RoundsMade {
            rounds: made.unsigned_abs(),
            ended: ended.expect("the code says how it ended"),
            inner: inner.collect(),
        }
    }
}

/// A step that is called: 0, or 1 where it has a fault, or fails in another way.
extern "C" fn step(handed: *const Handed<'_>, number: i64, addresses: *const *mut u8) -> i64 {
    let made = std::panic::catch_unwind(|| {
        // SAFETY: the code hands on what `run` gives it: this, and a table with an address for each place.
        let (handed, addresses) = unsafe {
            let handed = &*handed;
            let count = handed.given.len();
            (handed, std::slice::from_raw_parts(addresses, count))
        };
        handed.step(number as usize, addresses)
    });
    i64::from(!made.unwrap_or(false))
}

impl Handed<'_> {
    /// Makes a step that is called; false if it has a fault.
    fn step(&self, number: usize, addresses: &[*mut u8]) -> bool {
        let CompiledRounds { rounds, memos, .. } = self.rounds;
        let step = &rounds.steps[number];
        let Some(loops) = &step.called else {
            return false;
        };
        let made = step.operands.iter().map(|place| {
            let kind = &rounds.places[*place];
            let shape = kind.shape.iter().map(|n| *n as usize).collect();
            let copy = || copied(kind.dtype, addresses[*place], kind.elements() as usize);
            let array = || Array::new(shape, copy());
            match self.given[*place] {
                Some(_) => None,
                None => Some(array().expect("a place has as many elements as its sizes say")),
            }
        });
        let made: Vec<Option<Array>> = made.collect();
        let arrays = step.operands.iter().zip(&made);
        let arrays = arrays.filter_map(|(place, made)| made.as_ref().or(self.given[*place]));
        let chunks = arrays.map(|array| Chunk {
            columns: vec![array],
            start: vec![0; array.shape().len()],
        });
        let chunks: Vec<Chunk<'_>> = chunks.collect();
        let ranges = step.kernel.indices.iter().map(|index| (0, index.extent));
        let ranges: Vec<(u64, u64)> = ranges.collect();
        let scheduled = Scheduled {
            kernel: &step.kernel,
            loops,
        };
        let memo = Some(&memos[number]);
        match execute(scheduled, &ranges, &chunks, &Options::default(), memo) {
            Ok(results) => {
                let (data, place) = (results[0].data(), &rounds.places[step.result]);
                assert_eq!(data.dtype(), place.dtype, "the type of a place");
                assert_eq!(data.len() as u64, place.elements(), "the sizes of a place");
                put(data, addresses[step.result]);
                true
            }
            Err(_) => false,
        }
    }
}

/// The elements of a place.
fn copied(dtype: DType, from: *const u8, count: usize) -> Data {
    macro_rules! copied {
        ($($kind:ident)*) => {
            // SAFETY: a place has so many elements of its type, and nobody writes to it while a step is called.
            unsafe {
                match dtype {
                    $(DType::$kind => Data::$kind(std::slice::from_raw_parts(from.cast(), count).to_vec()),)*
                    other => unreachable!("{other} has no place in a compiled loop"),
                }
            }
        };
    }
    copied!(F32 F64 U8 U16 U32 U64 I8 I16 I32 I64 Bool)
}

/// Puts the elements of a result into its place.
fn put(data: &Data, to: *mut u8) {
    let bytes = data.len() * data.dtype().size();
    // SAFETY: the place has as many elements of this type, and nobody reads it while a step is called.
    unsafe { std::ptr::copy_nonoverlapping(start(data), to, bytes) };
}

macro_rules! elements {
    ($data:ident, $start:ident) => {
        match $data {
            Data::F32(v) => v.$start().cast(),
            Data::F64(v) => v.$start().cast(),
            Data::U8(v) => v.$start().cast(),
            Data::U16(v) => v.$start().cast(),
            Data::U32(v) => v.$start().cast(),
            Data::U64(v) => v.$start().cast(),
            Data::I8(v) => v.$start().cast(),
            Data::I16(v) => v.$start().cast(),
            Data::I32(v) => v.$start().cast(),
            Data::I64(v) => v.$start().cast(),
            Data::Bool(v) => v.$start().cast(),
            other => unreachable!("{} has no place in a compiled loop", other.dtype()),
        }
    };
}

/// Where elements begin.
fn start(data: &Data) -> *const u8 {
    elements!(data, as_ptr)
}

fn start_mut(data: &mut Data) -> *mut u8 {
    elements!(data, as_mut_ptr)
}

/// A function by its number.
fn numbered(number: i64) -> Function {
    Function::ALL[number as usize]
}

macro_rules! call {
    ($name:ident, $t:ty, $unary:path, $binary:path) => {
        /// A function of the strip machine, of one lane.
        extern "C" fn $name(number: i64, a: $t, b: $t) -> $t {
            let function = numbered(number);
            let mut to = [<$t>::default()];
            match function.arity() {
                1 => $unary(function, &mut to, &[a]),
                _ => $binary(function, &mut to, &[a], &[b]),
            }
            to[0]
        }
    };
}

call!(call_f32, f32, op::unary_f32, op::binary_f32);
call!(call_f64, f64, op::unary_f64, op::binary_f64);
call!(call_i32, i32, op::unary_i32, op::binary_i32);
call!(call_i64, i64, op::unary_i64, op::binary_i64);

/// A power with an exponent that is known, as the strip machine takes it.
extern "C" fn power_f32(_: i64, a: f32, exponent: f32) -> f32 {
    let mut to = [0.0];
    match op::exponent(exponent.into()) {
        (Some(n), _) => op::whole_power_f32(&mut to, &[a], n.into()),
        (None, Some(n)) => op::half_power_f32(&mut to, &[a], n),
        (None, None) => op::binary_f32(Function::Pow, &mut to, &[a], &[exponent]),
    }
    to[0]
}

/// Such a power in double precision.
extern "C" fn power_f64(_: i64, a: f64, exponent: f64) -> f64 {
    let mut to = [0.0];
    match op::exponent(exponent) {
        (Some(n), _) if op::WHOLE_F64.contains(&n) => {
            op::whole_power_f64(&mut to, &[a], n.into());
        }
        (None, Some(n)) => op::half_power_f64(&mut to, &[a], n),
        _ => op::binary_f64(Function::Pow, &mut to, &[a], &[exponent]),
    }
    to[0]
}
