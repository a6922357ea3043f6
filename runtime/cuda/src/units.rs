//! Texts and the modules that they are compiled to: each text once, many in a unit.
//!
//! A text that is announced is compiled when one that is announced is first needed, all that are announced till then in one unit. Texts are
//! compared whole. Must not know kernels.
//!
//! ```text
//! announce k, l, k   ->   two texts; need l   ->   one unit of two functions
//! ```

use crate::machine::{Argument, Machine, Module};
use crate::text::Text;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The most texts of a unit; more are compiled at the same time in several.
pub(crate) const MOST: usize = 24;

/// A text, and the function in a module that it is compiled to.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub text: Text,
    function: OnceLock<(Arc<dyn Module>, usize)>,
}

#[derive(Debug, Default)]
struct Texts {
    /// By the function's own text.
    known: HashMap<String, Arc<Compiled>>,
    announced: Vec<Arc<Compiled>>,
}

/// The texts of a device.
#[derive(Debug)]
pub(crate) struct Units {
    machine: Arc<dyn Machine>,
    texts: Mutex<Texts>,
}

impl Units {
    pub fn new(machine: Arc<dyn Machine>) -> Units {
        Units {
            machine,
            texts: Mutex::default(),
        }
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text, to be compiled when it, or another one, is needed.
    pub fn announce(&self, text: Text) -> Arc<Compiled> {
        let mut texts = self.texts();
        let Texts { known, announced } = &mut *texts;
        let compiled = known.entry(text.function("k")).or_insert_with(|| {
            let compiled = Arc::new(Compiled {
                text,
                function: OnceLock::new(),
            });
            announced.push(Arc::clone(&compiled));
            compiled
        });
        Arc::clone(compiled)
    }

    /// Launches a text so often that all `points` are computed.
    ///
    /// # Panics
    /// The text does not compile, or does what it must not: mistakes of this crate.
    pub fn launch(&self, compiled: &Compiled, points: u64, arguments: &[Argument]) {
        if points == 0 {
            return;
        }
        let (threads, each) = compiled.text.meeting.block();
        let blocks = u32::try_from(points.div_ceil(each)).ok();
        let blocks = blocks.filter(|blocks| *blocks <= i32::MAX as u32);
        let blocks = blocks.expect("the points of an array that fits in memory fit a grid");
        let (module, function) = self.function(compiled);
        if let Err(why) = module.launch(*function, blocks, threads, arguments) {
            panic!(
                "a generated kernel is wrong: {why}\n{}",
                compiled.text.function("k")
            );
        }
    }

    fn function<'a>(&self, compiled: &'a Compiled) -> &'a (Arc<dyn Module>, usize) {
        if let Some(function) = compiled.function.get() {
            return function;
        }
        // Whoever comes meanwhile waits, and finds it compiled.
        let mut texts = self.texts();
        let announced = std::mem::take(&mut texts.announced);
        let each = announced
            .len()
            .div_ceil(announced.len().div_ceil(MOST).max(1))
            .max(1);
        let compiled_all = std::thread::scope(|scope| {
            let units = announced.chunks(each);
            let begun: Vec<_> = units
                .map(|unit| scope.spawn(|| self.compile(unit)))
                .collect();
            let mut done = begun.into_iter().map(|unit| unit.join());
            done.try_for_each(|unit| unit)
        });
        if let Err(panic) = compiled_all {
            // Whoever waits finds the same fault.
            texts.announced = announced;
            resume_unwind(panic);
        }
        drop(texts);
        let function = compiled.function.get();
        function.expect("what is announced is compiled, or the run has stopped")
    }

    fn compile(&self, unit: &[Arc<Compiled>]) {
        let texts: Vec<&Text> = unit.iter().map(|compiled| &compiled.text).collect();
        match self.machine.load(&texts) {
            Ok(module) => {
                for (number, compiled) in unit.iter().enumerate() {
                    let _ = compiled.function.set((Arc::clone(&module), number));
                }
            }
            Err(why) => panic!("{why}"),
        }
    }
}
