//! The object file: a `main` that hands its data to the launcher.
//!
//! Must not know linkers, nor what the data mean.
//!
//! ```text
//! main(argc, argv) = ein_launch(&bundle, bundle_length, &shims, shims_length, argc, argv)
//! ```

use cranelift_codegen::{
    Context,
    ir::{AbiParam, Function, InstBuilder, Signature, UserFuncName, types},
    settings::{self, Configurable},
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use einc_diag::Diagnostic;
use std::fmt::Display;

/// An object file of the host with `main`, the bundle and the MPI shims.
///
/// # Errors
/// E0902 if the host is not one that machine code can be written for.
pub fn main(bundle: &[u8], shims: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let mut flags = settings::builder();
    flags.set("is_pic", "true").map_err(failed)?;
    flags.set("opt_level", "speed").map_err(failed)?;
    let isa = cranelift_native::builder()
        .map_err(failed)?
        .finish(settings::Flags::new(flags))
        .map_err(failed)?;
    let builder = ObjectBuilder::new(isa, "ein", default_libcall_names()).map_err(failed)?;
    let mut module = ObjectModule::new(builder);

    let bundle_data = constant(&mut module, "ein_bundle", bundle)?;
    let shims_data = constant(&mut module, "ein_shims", shims)?;
    let pointer = module.target_config().pointer_type();
    let convention = module.isa().default_call_conv();

    let mut launch = Signature::new(convention);
    for parameter in [
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
    for (data, length) in [(bundle_data, bundle.len()), (shims_data, shims.len())] {
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
        let object = super::main(b"a bundle of things", b"").unwrap();
        assert!(object.starts_with(b"\x7fELF"));
        assert!(object.windows(18).any(|w| w == b"a bundle of things"));
    }
}
