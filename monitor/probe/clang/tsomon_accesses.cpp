// Plugin of clang 14: hooks for accesses that -fsanitize=thread leaves out.
//
// Sizes       Loads and stores of other sizes than 1, 2, 4, 8 and 16 bytes: structures of five bytes in a
//             register, long double, vectors of 32 bytes.
// Variables   Parts of local variables that other threads know.
// Choices     Of two loads of which one is taken only that one is made.
// Arguments   Objects that a call copies to the stack: the caller's loads.
// Vectors     Loads and stores by functions of the processor and with masks: the whole vector. Of gathers
//             and scatters nothing.
// Misses      Inline assembly; functions that the program excludes from instrumentation.
// Source      LLVM 14, "Writing an LLVM Pass" (new pass manager).
// Cost        One pass over the instructions in front of the instrumentation.
#include <string>

#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

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
    changed_ = false;
    choose_before_loading(function);
    SmallVector<Instruction*, 64> instructions;
    for (BasicBlock& block : function) {
      for (Instruction& instruction : block) {
        instructions.push_back(&instruction);
      }
    }
    for (Instruction* const instruction : instructions) {
      look_at(instruction);
    }
    return changed_ ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }  // without optimization, too

 private:
  uint64_t size_of(Type* type) const { return layout_->getTypeStoreSize(type).getFixedSize(); }

  // Of "c ? a : b" the optimiser loads both and takes one, which a program without a race may not.
  // Where the program itself loads before it chooses, its loads have places of their own in the source.
  void choose_before_loading(Function& function) {
    SmallVector<SelectInst*, 8> choices;
    for (BasicBlock& block : function) {
      for (Instruction& instruction : block) {
        if (auto* choice = dyn_cast<SelectInst>(&instruction)) {
          choices.push_back(choice);
        }
      }
    }
    for (SelectInst* const choice : choices) {
      if (choice->getCondition()->getType()->isVectorTy()) {
        continue;
      }
      auto* const first = loaded_for(choice, choice->getTrueValue());
      auto* const second = loaded_for(choice, choice->getFalseValue());
      if (first != nullptr && second != nullptr && first != second) {
        load_chosen(choice, first, second);
      } else if (first != nullptr && second == nullptr) {
        load_if_chosen(choice, first, true);
      } else if (first == nullptr && second != nullptr) {
        load_if_chosen(choice, second, false);
      }
    }
  }
  // A plain load for this choice alone, behind which nothing is stored in front of it.
  static LoadInst* loaded_for(const SelectInst* choice, Value* value) {
    auto* const load = dyn_cast<LoadInst>(value);
    if (load == nullptr || !load->isSimple() || !load->hasOneUse() ||
        load->getParent() != choice->getParent() || !load->getDebugLoc() ||
        load->getDebugLoc() != choice->getDebugLoc()) {
      return nullptr;
    }
    for (const Instruction* next = load; next != choice; next = next->getNextNode()) {
      if (next->mayWriteToMemory()) {
        return nullptr;
      }
    }
    return load;
  }
  void load_chosen(SelectInst* choice, LoadInst* first, LoadInst* second) {
    if (first->getPointerOperandType() != second->getPointerOperandType()) {
      return;
    }
    IRBuilder<> builder(choice);
    Value* const place = builder.CreateSelect(choice->getCondition(), first->getPointerOperand(),
                                              second->getPointerOperand());
    LoadInst* const load = builder.CreateAlignedLoad(
        choice->getType(), place, std::min(first->getAlign(), second->getAlign()));
    choice->replaceAllUsesWith(load);
    choice->eraseFromParent();
    first->eraseFromParent();
    second->eraseFromParent();
    changed_ = true;
  }
  void load_if_chosen(SelectInst* choice, LoadInst* load, bool if_true) {
    IRBuilder<> builder(choice);
    Value* const condition =
        if_true ? choice->getCondition() : builder.CreateNot(choice->getCondition());
    Value* const other = if_true ? choice->getFalseValue() : choice->getTrueValue();
    BasicBlock* const before = choice->getParent();
    Instruction* const end = SplitBlockAndInsertIfThen(condition, choice, false);
    load->moveBefore(end);
    builder.SetInsertPoint(choice);
    PHINode* const chosen = builder.CreatePHI(choice->getType(), 2);
    chosen->addIncoming(load, end->getParent());
    chosen->addIncoming(other, before);
    choice->replaceAllUsesWith(chosen);
    choice->eraseFromParent();
    changed_ = true;
  }

  void look_at(Instruction* instruction) {
    if (auto* load = dyn_cast<LoadInst>(instruction)) {
      if (!load->isAtomic()) {
        access(load, load->getPointerOperand(), size_of(load->getType()), false);
      }
    } else if (auto* store = dyn_cast<StoreInst>(instruction)) {
      if (!store->isAtomic()) {
        access(store, store->getPointerOperand(), size_of(store->getValueOperand()->getType()),
               true);
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

  // The instrumentation looks whether this very pointer becomes known to others, not whether the local variable
  // that it points into does.
  void access(Instruction* instruction, Value* pointer, uint64_t size, bool store) {
    if (!has_hook(size) || (isa<AllocaInst>(getUnderlyingObject(pointer)) &&
                            !PointerMayBeCaptured(pointer, true, true))) {
      put(instruction, pointer, size, store);
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
    Value* const place = builder.CreatePointerCast(pointer, builder.getInt8PtrTy());
    const std::string name = store ? "__tsan_write" : "__tsan_read";
    CallInst* const call =
        has_hook(size)
            ? builder.CreateCall(
                  module_->getOrInsertFunction(name + std::to_string(size), builder.getVoidTy(),
                                               builder.getInt8PtrTy()),
                  {place})
            : builder.CreateCall(
                  module_->getOrInsertFunction(name + "_range", builder.getVoidTy(),
                                               builder.getInt8PtrTy(), builder.getInt64Ty()),
                  {place, builder.getInt64(size)});
    call->addParamAttr(0, Attribute::NoCapture);  // or the instrumentation adds its own
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
