// Registration: the early stage at the start of the pipeline, the probes at its very end, so that
// nothing hoists or merges them and no vectorisation is lost to them.

#include "compat.h"
#include "instrument.h"
#include "naive.h"
#include "opaque.h"
#include "options.h"

#include <optional>

using namespace llvm;

namespace {

/// Which pass adds the probes where the compiler tells the phases of LTO. A module that is linked with other crates' gets them before the link: what
/// comes by afterwards is every crate's code, among it the runtime's and the standard library's. Where rustc links only the parts of one crate,
/// the probes wait for the vectoriser behind that link.
std::optional<headway::InstrumentPass> instrumentIn(ThinOrFullLTOPhase Phase) {
  const bool LinksCrates = headway::options().LinksCrates;
  switch (Phase) {
  case ThinOrFullLTOPhase::None:
    return headway::InstrumentPass();
  case ThinOrFullLTOPhase::ThinLTOPreLink:
    return LinksCrates ? std::optional(headway::InstrumentPass(headway::Linked::WithOthers)) : std::nullopt;
  case ThinOrFullLTOPhase::ThinLTOPostLink:
    return LinksCrates ? std::nullopt : std::optional(headway::InstrumentPass());
  case ThinOrFullLTOPhase::FullLTOPreLink:
    return headway::InstrumentPass(headway::Linked::WithOthers);
  default:
    return std::nullopt;
  }
}

void registerPasses(PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel) {
    if (!headway::options().NaiveAddresses)
      MPM.addPass(headway::OpaqueAddressesPass());
    if (headway::options().NaivePlainLoad)
      MPM.addPass(headway::NaivePass());
  });
  headway::compat::registerOptimizerLast(PB, [](ModulePassManager &MPM, ThinOrFullLTOPhase Phase) {
    const auto Instrument = instrumentIn(Phase);
    if (Instrument && !headway::options().NaivePlainLoad)
      MPM.addPass(headway::InstrumentPass(*Instrument));
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
