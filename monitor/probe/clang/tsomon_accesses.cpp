// Plugin of clang 14: hooks for accesses that -fsanitize=thread leaves out.
//
// Sizes       Loads and stores of other sizes than 1, 2, 4, 8 and 16 bytes: structures of five bytes in a
//             register, long double, vectors of 32 bytes.
// Arguments   Objects that a call copies to the stack: the caller's loads.
// Vectors     Loads and stores by functions of the processor and with masks: the whole vector. Of gathers
//             and scatters nothing.
// Misses      Inline assembly; functions that the program excludes from instrumentation.
// Source      LLVM 14, "Writing an LLVM Pass" (new pass manager).
// Cost        One pass over the instructions in front of the instrumentation.
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

namespace {

using namespace llvm;

// The instrumentation has a hook of this size.
bool has_hook(uint64_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

// Nobody else can know it, or nobody can store to it.
bool is_own(const Value* pointer) {
  const Value* const object = getUnderlyingObject(pointer);
  if (const auto* global = dyn_cast<GlobalVariable>(object)) {
    return global->isConstant();
  }
  return isa<AllocaInst>(object) && !PointerMayBeCaptured(object, true, true);
}

class Accesses : public PassInfoMixin<Accesses> {
 public:
  PreservedAnalyses run(Function& function, FunctionAnalysisManager&) {
    if (!function.hasFnAttribute(Attribute::SanitizeThread)) {
      return PreservedAnalyses::all();
    }
    module_ = function.getParent();
    layout_ = &module_->getDataLayout();
    SmallVector<Instruction*, 64> instructions;
    for (BasicBlock& block : function) {
      for (Instruction& instruction : block) {
        instructions.push_back(&instruction);
      }
    }
    changed_ = false;
    for (Instruction* const instruction : instructions) {
      look_at(instruction);
    }
    return changed_ ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }  // without optimization, too

 private:
  uint64_t size_of(Type* type) const { return layout_->getTypeStoreSize(type).getFixedSize(); }

  void look_at(Instruction* instruction) {
    if (auto* load = dyn_cast<LoadInst>(instruction)) {
      if (!load->isAtomic()) {
        if (const uint64_t size = size_of(load->getType()); !has_hook(size)) {
          put(load, load->getPointerOperand(), size, false);
        }
      }
    } else if (auto* store = dyn_cast<StoreInst>(instruction)) {
      if (!store->isAtomic()) {
        if (const uint64_t size = size_of(store->getValueOperand()->getType()); !has_hook(size)) {
          put(store, store->getPointerOperand(), size, true);
        }
      }
    } else if (auto* call = dyn_cast<IntrinsicInst>(instruction)) {
      look_at_intrinsic(call);
    } else if (auto* call = dyn_cast<CallBase>(instruction)) {
      for (unsigned i = 0; i < call->arg_size(); ++i) {
        if (Type* const type = call->getParamByValType(i); type != nullptr) {
          put(call, call->getArgOperand(i), size_of(type), false);
        }
      }
    }
  }

  void look_at_intrinsic(IntrinsicInst* call) {
    switch (call->getIntrinsicID()) {
      case Intrinsic::masked_load:
      case Intrinsic::masked_expandload:
        return put(call, call->getArgOperand(0), size_of(call->getType()), false);
      case Intrinsic::masked_store:
      case Intrinsic::masked_compressstore:
        return put(call, call->getArgOperand(1), size_of(call->getArgOperand(0)->getType()), true);
      default:
        break;
    }
    const StringRef name = call->getCalledFunction()->getName();
    if (!name.startswith("llvm.x86.") || !call->mayReadOrWriteMemory() || name.contains("gather") ||
        name.contains("scatter") || name.contains("xsave") || name.contains("xrstor") ||
        name.contains("fxsave") || name.contains("fxrstor") || name.contains("clflush") ||
        name.contains("clwb") || name.contains("cldemote") || name.contains("clzero") ||
        name.contains("monitor")) {
      return;
    }
    Value* pointer = nullptr;
    uint64_t size = 0;
    for (Value* const argument : call->args()) {
      if (argument->getType()->isPointerTy()) {
        pointer = argument;
      } else if (argument->getType()->isVectorTy() || size == 0) {
        size = size_of(argument->getType());
      }
    }
    if (pointer == nullptr) {
      return;
    }
    const bool store = call->getType()->isVoidTy();
    if (name.contains("mxcsr")) {
      return put(call, pointer, 4, !name.contains("ldmxcsr"));
    }
    put(call, pointer, store ? size : size_of(call->getType()), store);
  }

  void put(Instruction* before, Value* pointer, uint64_t size, bool store) {
    if (size == 0 || pointer->getType()->getPointerAddressSpace() != 0 || is_own(pointer)) {
      return;
    }
    IRBuilder<> builder(before);
    if (!before->getDebugLoc() && before->getFunction()->getSubprogram() != nullptr) {
      builder.SetCurrentDebugLocation(DebugLoc(
          DILocation::get(before->getContext(), 0, 0, before->getFunction()->getSubprogram())));
    }
    const FunctionCallee hook = module_->getOrInsertFunction(
        store ? "__tsan_write_range" : "__tsan_read_range", builder.getVoidTy(),
        builder.getInt8PtrTy(), builder.getInt64Ty());
    CallInst* const call = builder.CreateCall(
        hook, {builder.CreatePointerCast(pointer, builder.getInt8PtrTy()), builder.getInt64(size)});
    call->setDoesNotThrow();
    changed_ = true;
  }

  Module* module_ = nullptr;
  const DataLayout* layout_ = nullptr;
  bool changed_ = false;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {
      LLVM_PLUGIN_API_VERSION, "tsomon_accesses", "1", [](PassBuilder& builder) {
        builder.registerOptimizerLastEPCallback([](ModulePassManager& manager, OptimizationLevel) {
          manager.addPass(createModuleToFunctionPassAdaptor(Accesses()));
        });
      }};
}
