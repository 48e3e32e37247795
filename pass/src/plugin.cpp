// Registration: the early stage at the start of the pipeline, the probes at its very end, so that
// nothing hoists or merges them and no vectorisation is lost to them.

#include "compat.h"
#include "instrument.h"
#include "naive.h"
#include "opaque.h"
#include "options.h"

using namespace llvm;

namespace {

void registerPasses(PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel) {
    MPM.addPass(headway::OpaqueAddressesPass());
    if (headway::options().NaivePlainLoad)
      MPM.addPass(headway::NaivePass());
  });
  headway::compat::registerOptimizerLast(PB, [](ModulePassManager &MPM, OptimizationLevel, bool IsThinPreLink) {
    // A pipeline that tells its phases comes by again after the thin link, with the vectoriser behind it.
    if (!IsThinPreLink && !headway::options().NaivePlainLoad)
      MPM.addPass(headway::InstrumentPass());
  });
  PB.registerPipelineParsingCallback([](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
    if (Name == "headway-opaque")
      MPM.addPass(headway::OpaqueAddressesPass());
    else if (Name == "headway")
      MPM.addPass(headway::InstrumentPass());
    else
      return false;
    return true;
  });
}

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "headway", "1", registerPasses};
}

/// The LLVM that this plugin was built for, for tools that want to say so before loading it.
extern "C" __attribute__((visibility("default"))) const int headway_plugin_llvm_major = LLVM_VERSION_MAJOR;
