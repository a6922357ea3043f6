//! SIGTERM and SIGINT: the first asks the run to finish its step and save, the second ends the process as it would without this.
//!
//! Must not know what is saved, or when.
//!
//! ```text
//! ^C   ->   asked() = Some("SIGINT"); all ranks agree; the step ends, the state is saved; exit status 130
//! ```

use ein_comm::{CommError, Communicator};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the process was asked to end. Cheap to clone and to look at; all clones see the same.
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

    /// Takes it that a signal came; a run can be asked to end by more than the system.
    pub fn request(&self, signal: Signal) {
        self.signal
            .store(signal.number() as usize, Ordering::Relaxed);
    }

    /// The signal that came, if one did.
    pub fn asked(&self) -> Option<Signal> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number if number == SIGINT as usize => Some(Signal::Interrupt),
            _ => Some(Signal::Terminate),
        }
    }

    /// The signal that any site of a run got: all sites call this after the same step, and all get the same answer.
    ///
    /// # Errors
    /// A site is lost.
    pub fn agreed(&self, sites: &dyn Communicator) -> Result<Option<Signal>, CommError> {
        let mine = self.asked().map(|signal| signal.name().to_owned());
        let found = sites.agree(mine)?;
        Ok(found.map(|(_, name)| match name.as_str() {
            "SIGINT" => Signal::Interrupt,
            _ => Signal::Terminate,
        }))
    }
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
