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
    if (!headway::options().NaiveAddresses)
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

#define HEADWAY_TEXT(X) HEADWAY_TEXT_OF(X)
#define HEADWAY_TEXT_OF(X) #X

/// For the wrappers, which look for it in the file: a plugin that does not fit cannot be loaded to be asked.
extern "C" __attribute__((visibility("default"), used)) const char headway_plugin_built_for[] =
    "headway pass built for LLVM " HEADWAY_TEXT(LLVM_VERSION_MAJOR) ".";
