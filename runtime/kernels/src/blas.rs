//! A system's BLAS, if one is asked for: loaded while the program runs, through the C interface that all of them have.
//!
//! It is called on one thread at a time by each of ours, so that threads are never more than the pool has. Must not know kernels.
//!
//! ```text
//! load("openblas")   ->   OpenBLAS 0.3.21, libopenblas.so.0
//! load("/opt/lib/libblis.so.4")
//! ```
#![allow(unsafe_code)]

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// Names that may stand for a library, and what its file may be called.
const KNOWN: [(&str, &[&str]); 3] = [
    (
        "openblas",
        &[
            "libopenblas.so.0",
            "libopenblas.so",
            "libopenblas64_.so.0",
            "libopenblas64.so.0",
        ],
    ),
    (
        "blis",
        &[
            "libblis.so.5",
            "libblis.so.4",
            "libblis.so",
            "libblis64.so.5",
            "libblis64.so.4",
        ],
    ),
    ("mkl", &["libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"]),
];

/// How a function's name is written in builds with 32-bit sizes (and in some with 64-bit ones), and in those with 64-bit ones.
const NARROW: [(&str, &str); 2] = [("", ""), ("scipy_", "")];
const WIDE: [(&str, &str); 2] = [("", "64_"), ("scipy_", "64_")];

const ROW_MAJOR: i32 = 101;
const PLAIN: i32 = 111;
const TRANSPOSED: i32 = 112;

/// `cblas_?gemm` with sizes of type `I`.
type Gemm<I, T> =
    unsafe extern "C" fn(i32, i32, i32, I, I, I, T, *const T, I, *const T, I, T, *mut T, I);

/// `cblas_?gemm` of either kind.
#[derive(Clone, Copy)]
enum Function<T> {
    Narrow(Gemm<i32, T>),
    Wide(Gemm<i64, T>),
}

/// A library that is loaded.
pub(crate) struct Blas {
    name: String,
    single: Function<f32>,
    double: Function<f64>,
}

static LOADED: OnceLock<Blas> = OnceLock::new();

/// The library that products are left to.
pub(crate) fn loaded() -> Option<&'static Blas> {
    LOADED.get()
}

/// What the library that is used calls itself; `None`: products are computed by the gemm crate.
pub fn blas_in_use() -> Option<&'static str> {
    LOADED.get().map(|blas| blas.name.as_str())
}

/// Leaves matrix products to a library from now on: `openblas`, `blis`, `mkl`, or the path of a file.
///
/// OpenBLAS is told its kernels by `OPENBLAS_CORETYPE`, on processors with AVX-512 that old versions do not know, unless the
/// variable is set or the process has threads already.
///
/// # Errors
/// Why it cannot be used, in a sentence.
pub fn load_blas(wanted: &str) -> Result<(), String> {
    if LOADED.get().is_some() {
        return Ok(());
    }
    if wide_vectors() && std::env::var_os("OPENBLAS_CORETYPE").is_none() && is_alone() {
        // SAFETY: this is the only thread of the process, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var("OPENBLAS_CORETYPE", "SkylakeX") };
    }
    let files: &[&str] = match KNOWN.iter().find(|(name, _)| *name == wanted) {
        Some((_, files)) => files,
        None if wanted.contains('/') => &[wanted],
        None => {
            return Err(format!(
                "`{wanted}` is none of openblas, blis and mkl, and no path of a library"
            ));
        }
    };
    let mut problems = vec![];
    for file in files {
        // SAFETY: who asks for a library vouches for what it runs when it is loaded.
        match unsafe { Library::new(*file) } {
            // SAFETY: and for its functions of BLAS's names being those of BLAS.
            Ok(library) => return unsafe { take(library, file) },
            Err(error) => problems.push(text(&error)),
        }
    }
    match problems.len() {
        1 => Err(problems.swap_remove(0)),
        _ => Err(problems.join("; ")),
    }
}

/// Looks up what is needed of a library.
///
/// # Safety
/// Its functions of these names are BLAS's.
unsafe fn take(library: Library, file: &str) -> Result<(), String> {
    // SAFETY: the caller's promise.
    let wide = unsafe { is_wide(&library) };
    // SAFETY: as above.
    let (single, double) = unsafe {
        (
            function(&library, "sgemm", wide),
            function(&library, "dgemm", wide),
        )
    };
    let (Some(single), Some(double)) = (single, double) else {
        return Err(format!(
            "{file} has no `cblas_sgemm` and `cblas_dgemm`: it is no BLAS with a C interface"
        ));
    };
    // SAFETY: functions of these names take the number of threads, in the library's size of integers.
    unsafe {
        for (name, wide) in [
            ("openblas_set_num_threads", false),
            ("scipy_openblas_set_num_threads", false),
            ("openblas_set_num_threads64_", false),
            ("scipy_openblas_set_num_threads64_", false),
            ("MKL_Set_Num_Threads", false),
            ("bli_thread_set_num_threads", true),
        ] {
            if wide {
                if let Some(set) = symbol::<unsafe extern "C" fn(i64)>(&library, name) {
                    set(1);
                }
            } else if let Some(set) = symbol::<unsafe extern "C" fn(i32)>(&library, name) {
                set(1);
            }
        }
    }
    // SAFETY: as above.
    let version = unsafe { version(&library) };
    let name = match version {
        Some(version) => format!("{file} ({version})"),
        None => file.to_owned(),
    };
    // Its threads and exit handlers may go on: it is never closed.
    std::mem::forget(library);
    let _another_was_first = LOADED.set(Blas {
        name,
        single,
        double,
    });
    Ok(())
}

/// # Safety
/// `F` is the type of the function of this name.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller's promise.
    let symbol: Result<Symbol<'_, F>, _> = unsafe { library.get(name.as_bytes()) };
    symbol.ok().map(|symbol| *symbol)
}

/// What a library tells of its version and how it was built.
///
/// # Safety
/// As for [`take`].
unsafe fn version(library: &Library) -> Option<String> {
    let names = [
        "openblas_get_config",
        "scipy_openblas_get_config",
        "openblas_get_config64_",
        "scipy_openblas_get_config64_",
        "bli_info_get_version_str",
    ];
    type Told = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: functions of these names return a constant string.
    unsafe {
        let told = names.iter().find_map(|name| symbol::<Told>(library, name));
        told.map(|config| CStr::from_ptr(config()).to_string_lossy().trim().to_owned())
    }
}

/// Whether functions whose names do not tell take 64-bit sizes.
///
/// # Safety
/// As for [`take`].
unsafe fn is_wide(library: &Library) -> bool {
    // SAFETY: functions of these names tell the bits of BLAS's integers, and let MKL have them of 32 bits, which it returns as 0.
    unsafe {
        let bits =
            symbol::<unsafe extern "C" fn() -> i64>(library, "bli_info_get_blas_int_type_size");
        let chosen = symbol::<unsafe extern "C" fn(i32) -> i32>(library, "MKL_Set_Interface_Layer");
        if let Some(bits) = bits {
            bits() == 64
        } else if let Some(choose) = chosen {
            choose(0) & 1 == 1
        } else {
            version(library).is_some_and(|config| config.contains("USE64BITINT"))
        }
    }
}

/// `wide`: a name without ending takes 64-bit sizes.
///
/// # Safety
/// As for [`take`].
unsafe fn function<T>(library: &Library, name: &str, wide: bool) -> Option<Function<T>> {
    let spelled = |(before, after): &(&str, &str)| format!("{before}cblas_{name}{after}");
    // SAFETY: the caller's promise.
    unsafe {
        let long = |forms: &[(&str, &str)]| {
            let found = forms
                .iter()
                .find_map(|form| symbol(library, &spelled(form)));
            found.map(Function::Wide)
        };
        let plain = || match wide {
            true => long(&NARROW),
            false => {
                let found = NARROW
                    .iter()
                    .find_map(|form| symbol(library, &spelled(form)));
                found.map(Function::Narrow)
            }
        };
        plain().or_else(|| long(&WIDE))
    }
}

fn text(error: &libloading::Error) -> String {
    use std::error::Error;
    error
        .source()
        .map_or_else(|| error.to_string(), |source| source.to_string())
}

/// Whether the process has one thread, as far as the system tells.
fn is_alone() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    threads.is_some_and(|threads| threads.trim() == "1")
}

#[cfg(target_arch = "x86_64")]
fn wide_vectors() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

#[cfg(not(target_arch = "x86_64"))]
fn wide_vectors() -> bool {
    false
}

/// A matrix in memory: its first element, the steps of rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Placed<P> {
    pub first: P,
    pub row: usize,
    pub column: usize,
}

impl<P> Placed<P> {
    /// How BLAS is told of it: plain or transposed, and the step between its lines; `None` if it cannot be.
    fn told(&self, rows: usize, columns: usize) -> Option<(i32, usize)> {
        let lines = |step: usize, within: usize, count: usize, length: usize| {
            let fits = (within == 1 || length == 1) && (step >= length || count == 1);
            fits.then_some(step.max(length))
        };
        lines(self.row, self.column, rows, columns)
            .map(|step| (PLAIN, step))
            .or_else(|| lines(self.column, self.row, columns, rows).map(|step| (TRANSPOSED, step)))
    }
}

/// A type that BLAS multiplies.
pub(crate) trait Multiplied: Copy {
    #[doc(hidden)]
    fn function(blas: &Blas) -> FunctionOf<Self>;
    #[doc(hidden)]
    const ONE: Self;
    #[doc(hidden)]
    const ZERO: Self;
}

/// A function of one library.
pub(crate) struct FunctionOf<T>(Function<T>);

impl Multiplied for f32 {
    fn function(blas: &Blas) -> FunctionOf<f32> {
        FunctionOf(blas.single)
    }
    const ONE: f32 = 1.0;
    const ZERO: f32 = 0.0;
}
impl Multiplied for f64 {
    fn function(blas: &Blas) -> FunctionOf<f64> {
        FunctionOf(blas.double)
    }
    const ONE: f64 = 1.0;
    const ZERO: f64 = 0.0;
}

impl Blas {
    /// `c = factor * a · b`, or that added to `c` if `more`; whether the library could be told of these matrices.
    ///
    /// # Safety
    /// All elements of the matrices are inside their memory, and those of `c` are the caller's alone.
    pub(crate) unsafe fn multiply<T: Multiplied>(
        &self,
        (m, n, k): (usize, usize, usize),
        a: Placed<*const T>,
        b: Placed<*const T>,
        c: Placed<*mut T>,
        factor: T,
        more: bool,
    ) -> bool {
        let Some((how, c_step)) = c.told(m, n) else {
            return false;
        };
        if how == TRANSPOSED {
            // The transposed product, into the same memory.
            let turned = |p: Placed<*const T>| Placed {
                row: p.column,
                column: p.row,
                ..p
            };
            let c = Placed {
                row: c.column,
                column: c.row,
                ..c
            };
            // SAFETY: the same matrices, rows and columns exchanged.
            return unsafe { self.multiply((n, m, k), turned(b), turned(a), c, factor, more) };
        }
        let (Some((a_how, a_step)), Some((b_how, b_step))) = (a.told(m, k), b.told(k, n)) else {
            return false;
        };
        let beta = if more { T::ONE } else { T::ZERO };
        let sizes = [m, n, k, a_step, b_step, c_step];
        match T::function(self).0 {
            Function::Narrow(gemm) => {
                let Ok(sizes) = <[i32; 6]>::try_from(
                    sizes
                        .iter()
                        .flat_map(|s| i32::try_from(*s))
                        .collect::<Vec<_>>(),
                ) else {
                    return false;
                };
                let [m, n, k, lda, ldb, ldc] = sizes;
                // SAFETY: BLAS reads and writes the elements of the matrices, which are inside.
                unsafe {
                    gemm(
                        ROW_MAJOR, a_how, b_how, m, n, k, factor, a.first, lda, b.first, ldb, beta,
                        c.first, ldc,
                    );
                }
            }
            Function::Wide(gemm) => {
                let [m, n, k, lda, ldb, ldc] = sizes.map(|size| size as i64);
                // SAFETY: as above.
                unsafe {
                    gemm(
                        ROW_MAJOR, a_how, b_how, m, n, k, factor, a.first, lda, b.first, ldb, beta,
                        c.first, ldc,
                    );
                }
            }
        }
        true
    }
}
