//! SIGTERM and SIGINT: the first asks the run to finish its step and save, the second ends the process as it would without this. A file that
//! becomes longer than `ulimit -f` lets it is a failed write, as on a full disk, not the end of the process.
//!
//! Must not know what is saved, or when.
//!
//! ```text
//! ^C   ->   asked() = Some(SIGINT); the session ends its step and saves what it carries; exit status 130
//! ```

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// True if the process was asked to end. Cheap to clone and to look at; all clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on, until the process ends.
    ///
    /// # Errors
    /// The system does not let the process handle its signals.
    pub fn listen() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // In this order: what is registered first runs first, and must see whether there was a signal before this one.
            flag::register_conditional_default(signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize)?;
        }
        Ok(interrupt)
    }

    /// The signal that came, if one did.
    pub fn asked(&self) -> Option<Signal> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Signal::numbered(number)),
        }
    }

    /// Returns the number that a run looks at: not 0 once a signal came.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.signal)
    }
}

/// From now on, a write beyond the limit for files fails. Where the system does not let the process handle the signal, it ends it.
pub fn outlive_long_files() {
    let _seen = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// A signal that asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a scheduler, or `kill`.
    Terminate,
}

impl Signal {
    /// The signal of a number.
    pub fn numbered(number: usize) -> Signal {
        match number == SIGINT as usize {
            true => Signal::Interrupt,
            false => Signal::Terminate,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }

    /// The exit status of a process that a shell sees end by it.
    pub fn status(self) -> i32 {
        128 + self.number()
    }

    fn number(self) -> i32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
        }
    }
}
