//! The scalar functions as expressions of CUDA C++: one row a function.
//!
//! Must not know graphs.
//!
//! ```text
//! add of f32: (v0 + v1)   add of i64: ein::add(v0, v1)   tanh: ein::tanh(v0)
//! ```

use ein_plan::{DType, Function, Scalar};

/// The type of a value of a compute type.
pub(crate) fn value_type(dtype: DType) -> &'static str {
    match dtype.compute() {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I32 => "int",
        DType::Bool => "bool",
        _ => "ein::whole",
    }
}

/// The type of an element in memory.
pub(crate) fn stored_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "ein::f16",
        DType::BF16 => "ein::bf16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::U8 => "unsigned char",
        DType::U16 => "unsigned short",
        DType::U32 => "unsigned",
        DType::U64 => "ein::bits",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "ein::whole",
        DType::Bool => "ein::truth",
        DType::C64 | DType::C128 => unreachable!("kernels compute the parts of complex numbers"),
    }
}

/// A number as a literal of a compute type.
pub(crate) fn literal(value: Scalar, dtype: DType) -> String {
    let (float, whole) = match value {
        Scalar::Float(x) => (x, x as i64),
        Scalar::Int(x) => (x as f64, x),
        Scalar::Bool(x) => (f64::from(u8::from(x)), i64::from(x)),
    };
    match dtype {
        DType::F32 if (float as f32).is_finite() => signed(format!("{:e}f", float as f32)),
        DType::F32 => format!("__uint_as_float({:#x}u)", (float as f32).to_bits()),
        DType::F64 if float.is_finite() => signed(format!("{float:e}")),
        DType::F64 => format!("__longlong_as_double({:#x}LL)", float.to_bits()),
        DType::Bool => (float != 0.0).to_string(),
        DType::I32 if whole as i32 == i32::MIN => "(-2147483647 - 1)".into(),
        DType::I32 => signed((whole as i32).to_string()),
        _ if whole == i64::MIN => "(-9223372036854775807LL - 1)".into(),
        _ => signed(format!("{whole}LL")),
    }
}

/// In brackets if it has a sign.
fn signed(text: String) -> String {
    match text.starts_with('-') {
        true => format!("({text})"),
        false => text,
    }
}

/// A function of arguments of this compute type. Library operations have no such expression.
pub(crate) fn call(function: Function, dtype: DType, arguments: &[String]) -> Option<String> {
    let infix = |sign: &str| Some(format!("({} {sign} {})", arguments[0], arguments[1]));
    match function {
        Function::Add if dtype.is_float() => infix("+"),
        Function::Sub if dtype.is_float() => infix("-"),
        Function::Mul if dtype.is_float() => infix("*"),
        Function::Div => infix("/"),
        Function::And => infix("&&"),
        Function::Or => infix("||"),
        Function::Eq => infix("=="),
        Function::Ne => infix("!="),
        Function::Lt => infix("<"),
        Function::Le => infix("<="),
        Function::Gt => infix(">"),
        Function::Ge => infix(">="),
        Function::BitAnd => infix("&"),
        Function::BitOr => infix("|"),
        Function::BitXor => infix("^"),
        Function::Neg if dtype.is_float() => Some(format!("(-{})", arguments[0])),
        Function::Not => Some(format!("(!{})", arguments[0])),
        Function::Stop | Function::Within => Some(arguments[0].clone()),
        Function::Select => Some(format!(
            "({} ? {} : {})",
            arguments[0], arguments[1], arguments[2]
        )),
        _ if function.is_library() => None,
        // The prelude has them by their own names.
        _ => Some(format!(
            "ein::{}({})",
            function.name(),
            arguments.join(", ")
        )),
    }
}

/// When a function of these arguments has no value, as a condition; `None`: never. `constant` is the second argument, if it is a number.
pub(crate) fn no_value(
    function: Function,
    dtype: DType,
    arguments: &[String],
    constant: Option<Scalar>,
) -> Option<String> {
    let known = match constant {
        Some(Scalar::Int(number)) => Some(number),
        _ => None,
    };
    let (a, b) = (arguments.first()?, arguments.get(1)?);
    match function {
        Function::FloorDiv | Function::Rem if dtype.is_integer() => known
            .is_none_or(|number| number == 0)
            .then(|| format!("{b} == 0")),
        Function::Pow if dtype.is_integer() => known
            .is_none_or(|number| number < 0)
            .then(|| format!("{b} < 0")),
        Function::Within => Some(format!("{a} < 0 || {a} >= {b}")),
        _ => None,
    }
}
