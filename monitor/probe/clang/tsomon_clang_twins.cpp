// Plugin of clang 14: two versions of each function, for --dormant.
//
// Purpose     As the plugin of gcc has it (monitor/probe/gcc/tsomon_twins.cpp): of each function the plain one,
//             without instrumentation, and its twin NAME.tsomon with it. At the start of the passes, so each
//             is inlined into its like; behind them twins that nobody can come to are taken away.
// Callers     of a local function leave out or change what they pass to it where the compiler sees that its body
//             makes nothing of it, or that all pass the same. The twin, which they may come to, does. So local functions are kept as they
//             are, as if others could call them, until all have been inlined.
// No twin     Functions that the program excludes from instrumentation, that are naked, or that keep the
//             address of a label in static data.
// Source      LLVM 14, "Writing an LLVM Pass" (new pass manager).
// Cost        As compiling the unit twice, at most. Thread-safety: none needed.
#include <string>
#include <vector>

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace {

using namespace llvm;

constexpr const char* kSuffix = ".tsomon";
constexpr const char* kAsItIs =
    "tsomon-as-it-is";  // a local function that is kept for its twin's sake

const char* obstacle(const Function& function) {
  if (!function.hasFnAttribute(Attribute::SanitizeThread)) {
    return "excluded from instrumentation";
  }
  if (function.hasFnAttribute(Attribute::Naked)) {
    return "naked";
  }
  for (const BasicBlock& block : function) {
    if (block.hasAddressTaken()) {
      for (const User* const user : BlockAddress::lookup(&block)->users()) {
        if (!isa<Instruction>(user)) {
          return "a label's address is kept in static data";
        }
      }
    }
  }
  return nullptr;
}

class Twins : public PassInfoMixin<Twins> {
 public:
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    std::vector<Function*> functions;
    for (Function& function : module) {
      if (!function.isDeclaration()) {
        functions.push_back(&function);
      }
    }
    std::vector<Function*> twins;
    std::vector<GlobalValue*> kept;
    SmallVector<GlobalValue*, 16> used;
    collectUsedGlobalVariables(module, used, true);
    std::string without;
    DenseMap<Function*, Function*> twin_of;
    for (Function* const function : functions) {
      // A body that is there for inlining alone is somewhere else, with its twin if it has one.
      if (function->hasAvailableExternallyLinkage() || function->getName().startswith("llvm.")) {
        continue;
      }
      if (const char* const why = obstacle(*function); why != nullptr) {
        without += "\t.string \"" + function->getName().str() + "\\t" + why + "\"\n";
        continue;
      }
      Function* const twin = make_twin(module, function);
      twin_of[function] = twin;
      twins.push_back(twin);
      kept.push_back(twin);
      if (function->hasLocalLinkage() && !is_contained(used, function)) {
        function->addFnAttr(kAsItIs);
        kept.push_back(function);
      }
    }
    for (Function* const function : functions) {
      function->removeFnAttr(Attribute::SanitizeThread);
      function->addFnAttr(Attribute::DisableSanitizerInstrumentation);
    }
    for (Function* const twin : twins) {
      for (Instruction& instruction : instructions(twin)) {
        auto* const call = dyn_cast<CallBase>(&instruction);
        Function* const callee = call == nullptr ? nullptr : call->getCalledFunction();
        // Another module may have a function of that name that comes before this one.
        if (callee != nullptr && twin_of.count(callee) != 0 && !callee->isInterposable()) {
          call->setCalledFunction(twin_of[callee]);
        }
      }
    }
    appendToCompilerUsed(module, kept);
    if (!without.empty()) {
      module.appendModuleInlineAsm(".pushsection .tsomon.no_twin,\"\",@progbits\n" + without +
                                   "\t.popsection");
    }
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }  // without optimization, too

 private:
  static Function* make_twin(Module& module, Function* function) {
    ValueToValueMapTy values;
    Function* const twin = CloneFunction(function, values);
    twin->setName(function->getName() + kSuffix);
    if (function->hasLinkOnceLinkage() || function->hasWeakLinkage()) {
      twin->setLinkage(GlobalValue::LinkOnceODRLinkage);
      twin->setVisibility(GlobalValue::HiddenVisibility);
      twin->setComdat(module.getOrInsertComdat(twin->getName()));
    } else {
      twin->setLinkage(GlobalValue::InternalLinkage);
      twin->setVisibility(GlobalValue::DefaultVisibility);
      twin->setComdat(nullptr);
    }
    twin->setDSOLocal(true);
    return twin;
  }
};

// Nobody can come to a twin whose plain function is not compiled, but from other twins.
class Leave : public PassInfoMixin<Leave> {
 public:
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    std::vector<Function*> local;
    for (Function& function : module) {
      if (function.hasFnAttribute(kAsItIs)) {
        local.push_back(&function);
      }
    }
    leave_used(module, local);
    erase_unused(local);
    std::vector<Function*> waiting;
    for (Function& twin : module) {
      if (twin.isDeclaration() || !twin.getName().endswith(kSuffix)) {
        continue;
      }
      Function* const plain = module.getFunction(twin.getName().drop_back(strlen(kSuffix)));
      if (plain == nullptr || plain->isDeclaration() ||
          (plain->isDiscardableIfUnused() && plain->use_empty())) {
        waiting.push_back(&twin);
      }
    }
    leave_used(module, waiting);
    erase_unused(waiting);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

 private:
  static void erase_unused(std::vector<Function*>& functions) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Function*& function : functions) {
        if (function != nullptr && function->use_empty() && function->isDiscardableIfUnused()) {
          function->eraseFromParent();
          function = nullptr;
          changed = true;
        }
      }
    }
  }
  static void leave_used(Module& module, const std::vector<Function*>& functions) {
    SmallVector<GlobalValue*, 16> used;
    GlobalVariable* const list = collectUsedGlobalVariables(module, used, true);
    if (list == nullptr || functions.empty()) {
      return;
    }
    const SmallPtrSet<GlobalValue*, 16> leaving(functions.begin(), functions.end());
    std::vector<GlobalValue*> kept;
    for (GlobalValue* const each : used) {
      if (leaving.count(each) == 0) {
        kept.push_back(each);
      }
    }
    list->eraseFromParent();
    appendToCompilerUsed(module, kept);
    for (Function* const function : functions) {
      function->removeDeadConstantUsers();
    }
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "tsomon_clang_twins", "1", [](PassBuilder& builder) {
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager& manager, OptimizationLevel) { manager.addPass(Twins()); });
            builder.registerOptimizerLastEPCallback(
                [](ModulePassManager& manager, OptimizationLevel) { manager.addPass(Leave()); });
          }};
}
