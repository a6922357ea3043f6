//! NVIDIA's matrix library: strided batches of matrix products.
//!
//! The library takes matrices by columns; one by rows is the transposed one to it. Sums of f16 and bf16 are made in f32, and f32 is never cut
//! to fewer digits. Must not know what is multiplied.
//!
//! ```text
//! 64 x f32[512, 512] = 0.125 * f32[512, 32] . f32[32, 512]^T   ->   cublasGemmStridedBatchedEx(T, N, 512, 512, 32, …, 64)
//! ```

use cudarc::cublas::result::{self, CublasError};
use cudarc::cublas::sys::{self, cublasComputeType_t, cublasOperation_t, cudaDataType};
use cudarc::driver::sys::CUstream;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// The type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// The upper half of a single.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Element {
    fn bytes(self) -> u64 {
        match self {
            Element::F16 | Element::BF16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }
}

/// A batch of matrices in memory. The elements of a row are neighbours, or those of a column; there may be one row or one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Address of an array.
    pub at: u64,
    /// Elements of the array in front of the first one.
    pub first: u64,
    /// Type of the elements.
    pub element: Element,
    /// Elements from one row to the next.
    pub between_rows: u64,
    /// Elements from one column to the next.
    pub between_columns: u64,
    /// Elements from one matrix of the batch to the next.
    pub between_batches: u64,
}

/// A product of matrices, or a batch of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrices {
    /// How many products.
    pub batches: u64,
    /// Rows of the left factor and of the result.
    pub rows: u64,
    /// Columns of the right factor and of the result.
    pub columns: u64,
    /// Columns of the left factor and rows of the right one.
    pub inner: u64,
    /// `rows` x `inner`.
    pub left: Matrix,
    /// `inner` x `columns`; its elements have the left factor's type.
    pub right: Matrix,
    /// `rows` x `columns`, of the factors' type, or f32 for f16 and bf16.
    pub result: Matrix,
    /// A factor of the result.
    pub scale: f64,
}

/// A handle of the library, for one stream.
#[derive(Debug)]
pub(crate) struct MatrixLibrary(Mutex<Handle>);

#[derive(Debug)]
struct Handle(sys::cublasHandle_t);

// SAFETY: any thread may use the handle, one at a time, which the mutex sees to.
unsafe impl Send for Handle {}

/// Says whether the library is there.
///
/// # Errors
/// It is not.
pub(crate) fn present() -> Result<(), String> {
    // SAFETY: it opens the library and closes it; nothing of ours runs then.
    match unsafe { sys::is_culib_present() } {
        true => Ok(()),
        false => {
            Err("the matrix library (libcublas) is not installed, or not in LD_LIBRARY_PATH".into())
        }
    }
}

impl MatrixLibrary {
    /// Opens the library for a stream of the context that the calling thread is bound to.
    pub fn open(stream: CUstream) -> Result<MatrixLibrary, String> {
        present()?;
        // SAFETY: it looks the function up, and does not call it.
        let known =
            unsafe { sys::culib().get::<unsafe extern "C" fn()>(b"cublasGemmStridedBatchedEx_64") };
        if known.is_err() {
            return Err("the matrix library (libcublas) is older than CUDA 12".into());
        }
        let words = |error: CublasError| {
            format!(
                "the matrix library (libcublas) does not work: {:?}",
                error.0
            )
        };
        let handle = result::create_handle().map_err(words)?;
        // SAFETY: the handle was made just now, and the stream is open.
        unsafe { result::set_stream(handle, stream.cast()) }.map_err(words)?;
        Ok(MatrixLibrary(Mutex::new(Handle(handle))))
    }

    pub fn multiply(&self, matrices: &Matrices) -> Result<(), String> {
        // By columns, the transposed result is the product of the transposed factors in the other order.
        let by_rows = matrices.result.between_columns == 1 || matrices.columns == 1;
        let (rows, columns, left, right, result) = match by_rows {
            true => {
                let transposed = |matrix: Matrix| Matrix {
                    between_rows: matrix.between_columns,
                    between_columns: matrix.between_rows,
                    ..matrix
                };
                let [left, right, result] =
                    [matrices.right, matrices.left, matrices.result].map(transposed);
                (matrices.columns, matrices.rows, left, right, result)
            }
            false => (
                matrices.rows,
                matrices.columns,
                matrices.left,
                matrices.right,
                matrices.result,
            ),
        };
        let inner = matrices.inner;
        let (left_turn, left_step) = operation(&left, rows, inner);
        let (right_turn, right_step) = operation(&right, inner, columns);
        let (_, result_step) = operation(&result, rows, columns);
        let (single, double) = (matrices.scale as f32, matrices.scale);
        let (zero_single, zero_double) = (0f32, 0f64);
        let of_double = left.element == Element::F64;
        let compute = match of_double {
            true => cublasComputeType_t::CUBLAS_COMPUTE_64F,
            false => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let number = |single: &f32, double: &f64| -> *const c_void {
            match of_double {
                true => (&raw const *double).cast(),
                false => (&raw const *single).cast(),
            }
        };
        let pointer = |matrix: &Matrix| {
            let at = matrix.at + matrix.first * matrix.element.bytes();
            std::ptr::with_exposed_provenance_mut::<c_void>(at as usize)
        };
        let handle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is open; the numbers live till the call returns, which copies them; the matrices are the caller's.
        let done = unsafe {
            sys::cublasGemmStridedBatchedEx_64(
                handle.0,
                left_turn,
                right_turn,
                rows as i64,
                columns as i64,
                inner as i64,
                number(&single, &double),
                pointer(&left),
                data_type(left.element),
                left_step as i64,
                left.between_batches as i64,
                pointer(&right),
                data_type(right.element),
                right_step as i64,
                right.between_batches as i64,
                number(&zero_single, &zero_double),
                pointer(&result),
                data_type(result.element),
                result_step as i64,
                result.between_batches as i64,
                matrices.batches as i64,
                compute,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        let failed =
            |error: CublasError| format!("the matrix library fails: {:?} in {matrices:?}", error.0);
        done.result().map_err(failed)
    }
}

/// How the library takes a matrix of so many rows and columns, and the elements from one of its lines to the next.
fn operation(matrix: &Matrix, rows: u64, columns: u64) -> (cublasOperation_t, u64) {
    let least = |step: u64, length: u64| step.max(length).max(1);
    match matrix.between_rows == 1 || rows == 1 {
        true => (
            cublasOperation_t::CUBLAS_OP_N,
            least(matrix.between_columns, rows),
        ),
        false => (
            cublasOperation_t::CUBLAS_OP_T,
            least(matrix.between_rows, columns),
        ),
    }
}

fn data_type(element: Element) -> cudaDataType {
    match element {
        Element::F16 => cudaDataType::CUDA_R_16F,
        Element::BF16 => cudaDataType::CUDA_R_16BF,
        Element::F32 => cudaDataType::CUDA_R_32F,
        Element::F64 => cudaDataType::CUDA_R_64F,
    }
}
