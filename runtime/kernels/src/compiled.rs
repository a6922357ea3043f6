//! The code of groups, compiled when there is enough work for it.
//!
//! A process compiles a group once, when the work that it has done for the group is worth the compilation. Results have the
//! same bits before and after, so it does not matter when. Must not know programs or strips.
//!
//! ```text
//! code(f32 (v, u) v2 = mul v0 v1; …, 65536 points)   none yet      code(the same, 10^7 points)   compiled in 0.4 ms
//! ```
#![allow(unsafe_code)]

use crate::Fusion;
use ein_fused::Group;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

/// Kernels over fewer points are left to the strip machine.
pub(crate) const FEWEST_POINTS: u64 = 1 << 12;
/// Operations on points after which a group is compiled: a few milliseconds of the strip machine.
const WORTH: u64 = 1 << 24;

/// The address of a group's function (see [`ein_fused::generate`]).
type Address = unsafe extern "C" fn(i64, *const *mut u8);

/// The code of a group.
#[derive(Clone, Copy)]
pub(crate) struct Code(Address);

impl Code {
    /// Runs it over some lanes.
    ///
    /// # Safety
    /// `lanes` is a positive multiple of the group's width. `addresses` are those of each input, then of each output,
    /// with that many lanes (one, if the input is uniform); an output overlaps nothing else, but may lie just where an input does: a turn of
    /// the loop reads before it writes.
    #[inline]
    pub(crate) unsafe fn run(self, lanes: usize, addresses: &[*mut u8]) {
        // SAFETY: the code was generated for this signature, and the caller vouches for the memory.
        unsafe { (self.0)(lanes as i64, addresses.as_ptr()) }
    }
}

/// Returns the number of groups that this process has compiled so far.
pub fn groups_compiled() -> u64 {
    COMPILED.load(Ordering::Relaxed)
}

static COMPILED: AtomicU64 = AtomicU64::new(0);

/// What is known of a group.
#[derive(Clone, Copy)]
enum State {
    /// Operations on points so far.
    Seen(u64),
    /// Its code; none if the compiler refused.
    Made(Option<Code>),
}

/// Returns the code of a group that is about to run over so many points, if it is compiled or now worth compiling.
pub(crate) fn code(group: &Group, points: u64, fusion: Fusion) -> Option<Code> {
    static GROUPS: LazyLock<Mutex<HashMap<Group, State>>> = LazyLock::new(Mutex::default);
    let mut groups = GROUPS.lock().ok()?;
    let before = match groups.get(group) {
        Some(State::Made(code)) => return *code,
        Some(State::Seen(work)) => *work,
        None => 0,
    };
    let work = before.saturating_add(points.saturating_mul(group.steps.len() as u64));
    let state = if fusion == Fusion::Always || work >= WORTH {
        COMPILED.fetch_add(1, Ordering::Relaxed);
        State::Made(jit::compile(group))
    } else {
        State::Seen(work)
    };
    groups.insert(group.clone(), state);
    match state {
        State::Made(code) => code,
        State::Seen(_) => None,
    }
}

/// Compiles functions into memory that this process executes.
pub(crate) mod jit {
    use super::{Address, Code};
    use cranelift_codegen::Context;
    use cranelift_codegen::ir::Function;
    use cranelift_codegen::isa::TargetFrontendConfig;
    use cranelift_codegen::settings::{self, Configurable};
    use cranelift_jit::{JITBuilder, JITModule};
    use cranelift_module::{Module, default_libcall_names};
    use ein_fused::{Group, generate};
    use std::sync::{LazyLock, Mutex};

    /// All code that was made; it is never freed.
    static MODULE: LazyLock<Option<Mutex<JITModule>>> = LazyLock::new(|| module().map(Mutex::new));

    fn module() -> Option<JITModule> {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        flags.set("is_pic", "false").ok()?;
        flags.set("use_colocated_libcalls", "false").ok()?;
        let isa = cranelift_native::builder()
            .ok()?
            .finish(settings::Flags::new(flags))
            .ok()?;
        Some(JITModule::new(JITBuilder::with_isa(
            isa,
            default_libcall_names(),
        )))
    }

    /// The code of a group; none if this machine's compiler does not know an operation of it.
    pub(super) fn compile(group: &Group) -> Option<Code> {
        let address = function(|config| generate::function(group, config))?;
        // SAFETY: the code at the address is a function of this signature; the module is never dropped.
        Some(Code(unsafe {
            std::mem::transmute::<*const u8, Address>(address)
        }))
    }

    /// The address of a function's code, which is never freed; none if this machine's compiler does not know an operation of it.
    pub(crate) fn function(
        made: impl FnOnce(TargetFrontendConfig) -> Function,
    ) -> Option<*const u8> {
        let mut module = MODULE.as_ref()?.lock().ok()?;
        let function = made(module.target_config());
        let id = module
            .declare_anonymous_function(&function.signature)
            .ok()?;
        let mut context = Context::for_function(function);
        module.define_function(id, &mut context).ok()?;
        module.finalize_definitions().ok()?;
        Some(module.get_finalized_function(id))
    }
}
