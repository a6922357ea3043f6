//! The object file: a `main` that hands its data to the launcher, and the code of groups of element-wise operations.
//!
//! Must not know linkers, nor what the data mean.
//!
//! ```text
//! main(argc, argv) = ein_launch(&bundle, bundle_length, &shims, shims_length, &groups, groups_count, argc, argv)
//! ```

use cranelift_codegen::{
    Context,
    ir::{AbiParam, Function, InstBuilder, Signature, UserFuncName, types},
    settings::{self, Configurable},
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use ein_fused::{Group, generate};
use einc_diag::Diagnostic;
use std::fmt::Display;

/// What the code of groups may use on a processor of this family; the launcher leaves it alone on an older one.
#[cfg(target_arch = "x86_64")]
const FEATURES: &[&str] = &[
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_avx",
    "has_avx2",
];
#[cfg(not(target_arch = "x86_64"))]
const FEATURES: &[&str] = &[];

/// An object file of the host's family of processors with `main`, the bundle, the MPI shims and the code of groups.
///
/// # Errors
/// E0902 if the host is not one that machine code can be written for.
pub fn main(bundle: &[u8], shims: &[u8], groups: &[Group]) -> Result<Vec<u8>, Diagnostic> {
    let mut flags = settings::builder();
    flags.set("is_pic", "true").map_err(failed)?;
    flags.set("opt_level", "speed").map_err(failed)?;
    let mut family = cranelift_native::builder_with_options(false).map_err(failed)?;
    for feature in FEATURES {
        family.enable(feature).map_err(failed)?;
    }
    let isa = family.finish(settings::Flags::new(flags)).map_err(failed)?;
    let builder = ObjectBuilder::new(isa, "ein", default_libcall_names()).map_err(failed)?;
    let mut module = ObjectModule::new(builder);

    let bundle_data = constant(&mut module, "ein_bundle", bundle)?;
    let shims_data = constant(&mut module, "ein_shims", shims)?;
    let groups_data = table(&mut module, groups)?;
    let pointer = module.target_config().pointer_type();
    let convention = module.isa().default_call_conv();

    let mut launch = Signature::new(convention);
    for parameter in [
        pointer,
        types::I64,
        pointer,
        types::I64,
        pointer,
        types::I64,
        types::I32,
        pointer,
    ] {
        launch.params.push(AbiParam::new(parameter));
    }
    launch.returns.push(AbiParam::new(types::I32));
    let launch = module
        .declare_function("ein_launch", Linkage::Import, &launch)
        .map_err(failed)?;

    let mut signature = Signature::new(convention);
    signature.params.push(AbiParam::new(types::I32));
    signature.params.push(AbiParam::new(pointer));
    signature.returns.push(AbiParam::new(types::I32));
    let main = module
        .declare_function("main", Linkage::Export, &signature)
        .map_err(failed)?;

    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut buffers = FunctionBuilderContext::new();
    let mut body = FunctionBuilder::new(&mut function, &mut buffers);
    let block = body.create_block();
    body.append_block_params_for_function_params(block);
    body.switch_to_block(block);
    body.seal_block(block);
    let (argc, argv) = (body.block_params(block)[0], body.block_params(block)[1]);
    let callee = module.declare_func_in_func(launch, body.func);
    let mut arguments = vec![];
    for (data, length) in [
        (bundle_data, bundle.len()),
        (shims_data, shims.len()),
        (groups_data, groups.len()),
    ] {
        let value = module.declare_data_in_func(data, body.func);
        arguments.push(body.ins().symbol_value(pointer, value));
        arguments.push(body.ins().iconst(types::I64, length as i64));
    }
    arguments.extend([argc, argv]);
    let call = body.ins().call(callee, &arguments);
    let status = body.inst_results(call)[0];
    body.ins().return_(&[status]);
    body.finalize(module.isa().frontend_config());

    let mut context = Context::for_function(function);
    module.define_function(main, &mut context).map_err(failed)?;
    module.finish().emit().map_err(failed)
}

/// The functions of groups and a table of them: 16 bytes each, the group's name and the function's address.
fn table(module: &mut ObjectModule, groups: &[Group]) -> Result<DataId, Diagnostic> {
    let mut bytes = vec![];
    let mut functions = vec![];
    for group in groups {
        let function = generate::function(group, module.target_config());
        let id = module
            .declare_anonymous_function(&function.signature)
            .map_err(failed)?;
        let mut context = Context::for_function(function);
        module.define_function(id, &mut context).map_err(failed)?;
        bytes.extend(group.name().to_ne_bytes());
        bytes.extend([0; 8]);
        functions.push(id);
    }
    let id = module
        .declare_data("ein_groups", Linkage::Local, false, false)
        .map_err(failed)?;
    let mut data = DataDescription::new();
    // `define`, not `define_zeroinit`, which would lose the addresses.
    data.define(if bytes.is_empty() { vec![0; 16] } else { bytes }.into());
    data.set_align(8);
    for (number, function) in functions.into_iter().enumerate() {
        let function = module.declare_func_in_data(function, &mut data);
        data.write_function_addr(16 * number as u32 + 8, function);
    }
    module.define_data(id, &data).map_err(failed)?;
    Ok(id)
}

/// Read-only bytes under a local symbol.
fn constant(module: &mut ObjectModule, name: &str, bytes: &[u8]) -> Result<DataId, Diagnostic> {
    let id = module
        .declare_data(name, Linkage::Local, false, false)
        .map_err(failed)?;
    let mut data = DataDescription::new();
    // `define`, also for nothing: a zero-initialised object would go to another section.
    data.define(if bytes.is_empty() { &[0] } else { bytes }.into());
    module.define_data(id, &data).map_err(failed)?;
    Ok(id)
}

fn failed(error: impl Display) -> Diagnostic {
    Diagnostic::error("E0902", format!("no object file could be made: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    fn the_object_holds_its_data() {
        let object = super::main(b"a bundle of things", b"", &[]).unwrap();
        assert!(object.starts_with(b"\x7fELF"));
        assert!(object.windows(18).any(|w| w == b"a bundle of things"));
    }

    #[test]
    fn the_object_holds_the_code_of_groups_under_their_names() {
        let text = "f32 (v, u) v2 = mul v0 v1; v3 = max v2 v0; v4 = floor v3 -> v4";
        let group: ein_fused::Group = text.parse().unwrap();
        let bare = super::main(b"", b"", &[]).unwrap();
        let object = super::main(b"", b"", std::slice::from_ref(&group)).unwrap();
        let name = group.name().to_ne_bytes();
        assert!(object.windows(8).any(|w| w == name));
        assert!(!bare.windows(8).any(|w| w == name));
        // Functions and their table: more than the table alone.
        assert!(object.len() > bare.len() + 64);
    }
}
