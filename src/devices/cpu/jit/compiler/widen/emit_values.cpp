// Values of the block being written, and arithmetic on them.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <stdexcept>

#include "devices/cpu/jit/compiler/widen/describe.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/operations.h"
#include "devices/cpu/jit/compiler/widen/tile_product.h"
#include "devices/cpu/jit/compiler/widen/wide_function.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using msl::Intrinsic;

llvm::Type* Emitter::plain(llvm::Type* type) const {
  return type->isPointerTy() ? llvm::PointerType::get(context_, 0) : type;
}

llvm::Type* Emitter::wide(llvm::Type* type) const {
  return llvm::FixedVectorType::get(plain(type), simdgroup_width);
}

llvm::Value* Emitter::constant_of(const llvm::Constant* constant) {
  auto* mutable_constant = const_cast<llvm::Constant*>(constant);
  if (!constant->getType()->isPointerTy()) return mutable_constant;
  const bool is_generic =
      constant->getType()->getPointerAddressSpace() == msl::address_space::generic;
  // A place in a variable may be cast to the generic space.
  if (is_generic && !isa<llvm::ConstantExpr>(constant)) return mutable_constant;
  llvm::Type* type = plain(constant->getType());
  if (isa<llvm::PoisonValue>(constant)) return llvm::PoisonValue::get(type);
  if (isa<llvm::UndefValue>(constant)) return llvm::UndefValue::get(type);
  if (constant->isNullValue()) return llvm::Constant::getNullValue(type);
  // A place inside a global: optimising made a constant of it again.
  llvm::APInt offset(layout_.getIndexTypeSizeInBits(constant->getType()), 0);
  const Value* base = constant->stripAndAccumulateConstantOffsets(layout_, offset, true);
  if (auto found = known_.find(base); found != known_.end())
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), found->second, offset.getZExtValue());
  if (is_generic) return mutable_constant;
  throw Declined{"a constant pointer: " + describe(*constant)};
}

llvm::Value* Emitter::scalar_of(const Value* value) {
  if (auto found = known_.find(value); found != known_.end()) return found->second;
  if (version_ == converged) {
    if (auto found = known_converged_.find(value); found != known_converged_.end())
      return found->second;
  }
  if (auto* constant = dyn_cast<llvm::Constant>(value)) return constant_of(constant);
  if (auto found = held_.find(value); found != held_.end()) return found->second;
  if (!is_carried(value))
    throw std::logic_error(describe(*value) + " is read in block " + block_->getName().str() +
                           ", to which it is not carried");
  llvm::AllocaInst* place = variable(value, version_);
  Value* loaded = b_.CreateLoad(place->getAllocatedType(), place);
  held_[value] = loaded;
  return loaded;
}

// Whether the variable of a value has been written where the current block reads it.
bool Emitter::is_carried(const Value* value) const {
  if (!escaping_.contains(value)) return false;
  if (!is_dual(value)) return true;
  // Also after a jump from the other version.
  return live_in_.find(block_)->second.contains(value) ||
         live_out_.find(block_)->second.contains(value);
}

llvm::Value* Emitter::as_vector(Value* held, Shape shape) {
  if (shape.kind == Shape::varying) return held;
  if (shape.kind == Shape::uniform) return lanes_.splat(held);
  llvm::Type* type = held->getType();
  if (type->isPointerTy())
    return b_.CreateGEP(b_.getInt8Ty(), held, lanes_.offsets(b_.getInt64Ty(), shape));
  return b_.CreateAdd(lanes_.splat(held), lanes_.offsets(type, shape));
}

llvm::Value* Emitter::vector_of(const Value* value) {
  Shape s = shape(value);
  Value* held = scalar_of(value);
  if (s.kind == Shape::varying) return held;
  if (isa<llvm::Constant>(held)) return as_vector(held, s);
  Value*& made = vectors_[value];
  if (!made) made = as_vector(held, s);
  return made;
}

void Emitter::define(const Instruction& instruction, Value* held) {
  if (!held) return;
  held_[&instruction] = held;
  if (escaping_.contains(&instruction)) b_.CreateStore(held, variable(&instruction, version_));
}

llvm::Value* Emitter::mask() {
  if (version_ == converged) return predicate_ ? predicate_ : lanes_.all_ones();
  return current_mask_;
}

void Emitter::emit_instruction(Instruction& instruction) {
  if (known_.contains(&instruction)) return;
  if (version_ == converged && known_converged_.contains(&instruction)) return;
  if (shape(&instruction).is_fixed && instruction.getType()->isIntegerTy()) {
    llvm::Type* type = instruction.getType();
    return define(instruction, llvm::ConstantInt::get(
                                   type, static_cast<uint64_t>(shape(&instruction).base), true));
  }
  switch (instruction.getOpcode()) {
    case Instruction::Load:
      return emit_load(cast<llvm::LoadInst>(instruction));
    case Instruction::Store:
      return emit_store(cast<llvm::StoreInst>(instruction));
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg:
      return emit_atomic(instruction);
    case Instruction::ExtractValue: {
      auto& extract = cast<llvm::ExtractValueInst>(instruction);
      const Exchange& exchange = exchanges_.find(extract.getAggregateOperand())->second;
      return define(instruction,
                    extract.getIndices()[0] == 0 ? exchange.old_value : exchange.success);
    }
    case Instruction::Fence:
      b_.CreateFence(cast<llvm::FenceInst>(instruction).getOrdering());
      return;
    case Instruction::GetElementPtr:
      return define(instruction, emit_pointer(cast<llvm::GetElementPtrInst>(instruction)));
    case Instruction::Call:
      if (kernel_intrinsic(instruction))
        return define(instruction, emit_kernel_call(cast<llvm::CallInst>(instruction)));
      break;
    default:
      break;
  }
  define(instruction,
         shape(&instruction).is_scalar() ? emit_scalar(instruction) : emit_vector(instruction));
}

// The operation on scalars, or on the bases of linear values.
llvm::Value* Emitter::emit_scalar(Instruction& instruction) {
  bool has_linear = false;
  for (Value* operand : instruction.operands()) {
    if (shape(operand).has_base()) has_linear = true;
  }
  auto first = [&] { return scalar_of(instruction.getOperand(0)); };
  switch (instruction.getOpcode()) {
    case Instruction::AddrSpaceCast:
      return first();
    case Instruction::SExt:
    case Instruction::ZExt:
      if (has_linear)
        return extend_base(cast<llvm::CastInst>(instruction), instruction.getOperand(0));
      break;
    case Instruction::Or:
      // The lanes' bits are disjoint, those of the base need not be: see Shape.
      if (has_linear && cast<llvm::PossiblyDisjointInst>(instruction).isDisjoint())
        return b_.CreateAdd(first(), scalar_of(instruction.getOperand(1)));
      break;
    case Instruction::IntToPtr:
    case Instruction::BitCast:
      if (instruction.getType()->isPointerTy())
        return b_.CreateBitOrPointerCast(first(), plain(instruction.getType()));
      break;
    default:
      break;
  }
  if (auto* call = dyn_cast<llvm::CallInst>(&instruction)) {
    for (Value* argument : call->args()) {
      if (argument->getType()->isPointerTy())
        throw Declined{"an intrinsic on pointers: " + describe(instruction)};
    }
  }
  Instruction* copy = instruction.clone();
  for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
    if (auto* call = dyn_cast<llvm::CallInst>(&instruction); call && i >= call->arg_size()) break;
    copy->setOperand(i, scalar_of(instruction.getOperand(i)));
  }
  copy->mutateType(plain(instruction.getType()));
  if (has_linear) copy->dropPoisonGeneratingFlags();
  copy->dropUnknownNonDebugMetadata();
  copy->setDebugLoc(llvm::DebugLoc());
  return b_.Insert(copy);
}

// The base of an extended linear value. Reads what Shapes::for_each_read says.
llvm::Value* Emitter::extend_base(const llvm::CastInst& extension, const Value* value) {
  llvm::Type* type = extension.getType();
  switch (shapes_[version_]->base_form(extension, value)) {
    case Shapes::BaseForm::sign_extended:
      return b_.CreateSExt(scalar_of(value), type);
    case Shapes::BaseForm::parts: {
      auto* sum = cast<llvm::BinaryOperator>(value);
      Value* a = extend_base(extension, sum->getOperand(0));
      Value* c = extend_base(extension, sum->getOperand(1));
      return b_.CreateBinOp(sum->getOpcode(), a, c);
    }
    case Shapes::BaseForm::extended:
      break;
  }
  return isa<llvm::SExtInst>(extension) ? b_.CreateSExt(scalar_of(value), type)
                                        : b_.CreateZExt(scalar_of(value), type);
}

llvm::Value* Emitter::emit_pointer(llvm::GetElementPtrInst& gep) {
  llvm::MapVector<Value*, llvm::APInt> variable_parts;
  llvm::APInt constant(64, 0);
  auto& operation = cast<llvm::GEPOperator>(gep);
  if (!operation.collectOffset(layout_, 64, variable_parts, constant))
    throw Declined{"an address of unknown size: " + describe(gep)};
  Shape s = shape(&gep);
  bool is_wide = s.kind == Shape::varying;
  int64_t scale_all = memory_.interleaved(&gep) ? simdgroup_width : 1;
  llvm::Type* i64 = b_.getInt64Ty();
  // Scalar parts first, so that a vector is added once.
  Value* pointer = scalar_of(gep.getPointerOperand());
  bool pointer_is_wide = shape(gep.getPointerOperand()).kind == Shape::varying;
  Value* uniform_offset = nullptr;
  Value* wide_offset = nullptr;
  LaneOffsets along = {};
  auto move = [&](const Shape& part, int64_t factor) {
    for (size_t lane = 0; lane < along.size(); ++lane)
      along[lane] += part.offset(static_cast<int64_t>(lane)) * factor;
  };
  if (!pointer_is_wide) move(shape(gep.getPointerOperand()), 1);
  auto add = [&](Value*& sum, Value* part) { sum = sum ? b_.CreateAdd(sum, part) : part; };
  for (auto& [index, scale] : variable_parts) {
    Shape part = shape(index);
    int64_t factor = scale.getSExtValue() * scale_all;
    if (part.kind == Shape::varying) {
      Value* offsets = vector_of(index);
      if (factor != 1)
        offsets = b_.CreateMul(
            offsets, llvm::ConstantInt::get(offsets->getType(), static_cast<uint64_t>(factor)));
      add(wide_offset, offsets);
    } else {
      Value* offset = scalar_of(index);
      if (factor != 1)
        offset = b_.CreateMul(offset, llvm::ConstantInt::get(i64, static_cast<uint64_t>(factor)));
      add(uniform_offset, offset);
      move(part, factor);
    }
  }
  int64_t fixed = constant.getSExtValue() * scale_all;
  // The constant last, so that neighbours share the rest.
  if (uniform_offset) pointer = b_.CreateGEP(b_.getInt8Ty(), pointer, uniform_offset);
  if (is_wide) {
    if (along != LaneOffsets{}) add(wide_offset, lanes_.vector(i64, along));
    if (wide_offset) {
      pointer = b_.CreateGEP(b_.getInt8Ty(), pointer, wide_offset);
    } else if (!pointer_is_wide) {
      pointer = lanes_.splat(pointer);
    }
  }
  if (fixed != 0)
    pointer = b_.CreateGEP(b_.getInt8Ty(), pointer,
                           llvm::ConstantInt::get(i64, static_cast<uint64_t>(fixed)));
  if (is_wide && !pointer->getType()->isVectorTy()) pointer = lanes_.splat(pointer);
  return pointer;
}

llvm::Value* Emitter::emit_vector(Instruction& instruction) {
  if (auto* select = dyn_cast<llvm::SelectInst>(&instruction);
      select && shape(select->getCondition()).kind == Shape::uniform) {
    return b_.CreateSelect(scalar_of(select->getCondition()), vector_of(select->getTrueValue()),
                           vector_of(select->getFalseValue()));
  }
  if (has_wide_operation(instruction)) {
    return widen_operation(b_, instruction, all_on() ? nullptr : mask(),
                           [&](Value* operand) { return vector_of(operand); });
  }
  if (auto* call = dyn_cast<llvm::CallInst>(&instruction)) return emit_vector_call(*call);
  throw Declined{"an instruction without a wide form: " + describe(instruction)};
}

llvm::Value* Emitter::emit_vector_call(llvm::CallInst& call) {
  llvm::Function* callee = call.getCalledFunction();
  if (!callee->isDeclaration()) return emit_shared_call(call);
  if (!callee->isIntrinsic()) throw Declined{"a call to " + callee->getName().str()};
  if (!call.doesNotAccessMemory() || call.getType()->isVoidTy() ||
      call.getType()->isAggregateType())
    throw Declined{"an intrinsic without a wide form: " + describe(call)};
  // One lane after the other.
  Value* result = llvm::PoisonValue::get(wide(call.getType()));
  for (uint64_t lane = 0; lane < simdgroup_width; ++lane) {
    auto* copy = cast<llvm::CallInst>(call.clone());
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      Value* argument = call.getArgOperand(i);
      if (shape(argument).kind == Shape::uniform) {
        copy->setArgOperand(i, scalar_of(argument));
      } else {
        copy->setArgOperand(i, b_.CreateExtractElement(vector_of(argument), lane));
      }
    }
    copy->dropUnknownNonDebugMetadata();
    copy->setDebugLoc(llvm::DebugLoc());
    result = b_.CreateInsertElement(result, b_.Insert(copy), lane);
  }
  return result;
}

llvm::Value* Emitter::emit_shared_call(llvm::CallInst& call) {
  llvm::Function* shared = call.getCalledFunction();
  llvm::Function*& made = shared_[shared];
  if (!made) {
    made = widen_function(*shared, (group_->getName() + "." + shared->getName()).str(), set_);
  }
  llvm::SmallVector<Value*, 4> arguments;
  for (Value* argument : call.args()) arguments.push_back(vector_of(argument));
  if (made->arg_size() > arguments.size()) arguments.push_back(mask());
  llvm::CallInst* result = b_.CreateCall(made, arguments);
  result->setCallingConv(made->getCallingConv());
  return result;
}

// Where threads lie in groups of any size: index = lane's number in the group, x fastest. The
// quotients are exact in single precision, since an index is less than 1056.
llvm::Value* Emitter::emit_position(uint64_t axis) {
  auto* type = llvm::FixedVectorType::get(b_.getInt32Ty(), simdgroup_width);
  auto* real = llvm::FixedVectorType::get(b_.getFloatTy(), simdgroup_width);
  Value* first = b_.CreateMul(out_.simdgroup, b_.getInt32(simdgroup_width));
  Value* index = b_.CreateAdd(lanes_.splat(first), lanes_.index(b_.getInt32Ty()));
  auto divide = [&](Value* v, Value* by) {
    Value* middle = b_.CreateFAdd(b_.CreateUIToFP(v, real), llvm::ConstantFP::get(real, 0.5));
    return b_.CreateFPToUI(
        b_.CreateFDiv(middle, lanes_.splat(b_.CreateUIToFP(by, b_.getFloatTy()))), type);
  };
  Value* rows = divide(index, size_[0]);
  if (axis == 0) return b_.CreateSub(index, b_.CreateMul(rows, lanes_.splat(size_[0])));
  Value* planes = divide(rows, size_[1]);
  if (axis == 2) return planes;
  return b_.CreateSub(rows, b_.CreateMul(planes, lanes_.splat(size_[1])));
}

llvm::Value* Emitter::emit_kernel_call(llvm::CallInst& call) {
  Intrinsic intrinsic = *kernel_intrinsic(call);
  Value* active = all_on() ? nullptr : mask();
  switch (intrinsic) {
    case Intrinsic::thread_position_in_threadgroup:
      return emit_position(cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue());
    case Intrinsic::threadgroup_barrier:
      b_.CreateCall(out_.barrier);
      return nullptr;
    case Intrinsic::simdgroup_barrier:
      return nullptr;  // lanes run together
    case Intrinsic::poll: {
      llvm::LoadInst* flag = b_.CreateAlignedLoad(b_.getInt32Ty(), cancelled_, llvm::Align(4));
      flag->setAtomic(llvm::AtomicOrdering::Monotonic);
      return b_.CreateZExt(b_.CreateICmpNE(flag, b_.getInt32(0)), call.getType());
    }
    case Intrinsic::ballot: {
      Value* predicate = vector_of(call.getArgOperand(0));
      Value* chosen =
          b_.CreateICmpNE(predicate, llvm::Constant::getNullValue(predicate->getType()));
      if (active) chosen = b_.CreateAnd(b_.CreateFreeze(chosen), active);
      return lanes_.bits(chosen);
    }
    case Intrinsic::log:
      emit_message(call);
      return nullptr;
    case Intrinsic::matrix_multiply_accumulate_f32:
    case Intrinsic::mma_m16n8k16_f16:
    case Intrinsic::mma_m16n8k16_bf16:
      return emit_matrix_product(call);
    default:
      break;
  }
  llvm::StringRef name = call.getCalledFunction()->getName();
  Value* operand = vector_of(call.getArgOperand(0));
  if (name.starts_with("__hf_reduce_")) return lanes_.reduce(intrinsic, operand, active);
  if (name.starts_with("__hf_scan_")) return lanes_.scan(intrinsic, operand, active);
  if (name.starts_with("__hf_shuffle_")) {
    Value* which = call.getArgOperand(1);
    bool one = shape(which).kind == Shape::uniform;
    return lanes_.shuffle(intrinsic, operand, one ? scalar_of(which) : vector_of(which), active);
  }
  throw Declined{"no wide form of " + name.str()};
}

// The elements of a product are calls on the same operands: computed once.
llvm::Value* Emitter::emit_matrix_product(llvm::CallInst& call) {
  const unsigned last = call.arg_size() - 1;
  auto* which = dyn_cast<llvm::ConstantInt>(call.getArgOperand(last));
  if (!which) throw Declined{"a matrix product with a computed element number"};
  auto is_same = [&](const llvm::CallInst& earlier) {
    if (earlier.getCalledFunction() != call.getCalledFunction()) return false;
    for (unsigned i = 0; i < last; ++i) {
      if (earlier.getArgOperand(i) != call.getArgOperand(i)) return false;
    }
    return true;
  };
  auto element = [&](const MatrixElements& of) {
    return of[which->getZExtValue() & (of.size() - 1)];
  };
  for (auto& [earlier, results] : products_) {
    if (is_same(*earlier)) return element(results);
  }
  MatrixElements results;
  if (is_call_of(call, Intrinsic::matrix_multiply_accumulate_f32)) {
    llvm::SmallVector<Value*, 6> operands;
    for (unsigned i = 0; i < 6; ++i) {
      Value* v = vector_of(call.getArgOperand(i));
      // Lanes that are off count as zero.
      if (!all_on()) v = b_.CreateSelect(mask(), v, llvm::Constant::getNullValue(v->getType()));
      operands.push_back(v);
    }
    for (Value* one : lanes_.multiply(operands)) results.push_back(one);
  } else {
    results = multiply_tiles(call);
  }
  products_[&call] = results;
  return element(results);
}

// By a function: written out, a product is some 300 instructions.
Emitter::MatrixElements Emitter::multiply_tiles(llvm::CallInst& call) {
  const bool is_bfloat = is_call_of(call, Intrinsic::mma_m16n8k16_bf16);
  llvm::Function*& product = tile_products_[is_bfloat];
  if (!product)
    product = make_tile_product(module_, (group_->getName() + ".tiles").str(), is_bfloat);
  if (!tile_operands_)
    tile_operands_ = guard_memory(tile_operands * tile_operand_bytes, tile_operand_bytes);
  auto place = [&](unsigned i) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), tile_operands_, i * tile_operand_bytes);
  };
  const llvm::Align align(tile_operand_bytes);
  for (unsigned i = 0; i < tile_operands; ++i)
    b_.CreateAlignedStore(vector_of(call.getArgOperand(i)), place(i), align);
  b_.CreateCall(product, {tile_operands_})->setCallingConv(product->getCallingConv());
  MatrixElements results;
  for (unsigned i = 0; i < tile_results; ++i)
    results.push_back(
        b_.CreateAlignedLoad(wide(call.getType()), place(first_tile_result + i), align));
  return results;
}

}  // namespace holdfast::jit
