// DLPack: arrays of other frameworks, without copies. The structures are those of its
// specification, version 0.8 (unversioned capsules, "dltensor").
#include <holdfast/ops.h>

#include "array_type.h"

namespace holdfast::python {

namespace {

struct DlDevice {
  int32_t type;  // 1: memory of the host
  int32_t index;
};
struct DlDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* manager;
  void (*deleter)(DlManagedTensor*);
};

constexpr int32_t host = 1;

DlDataType type_of(Dtype dtype) {
  uint8_t code = 0;
  if (dtype == bool_)
    code = 6;
  else if (dtype == bfloat16)
    code = 4;
  else if (dtype == complex64)
    code = 5;
  else if (issubdtype(dtype, floating))
    code = 2;
  else if (issubdtype(dtype, unsignedinteger))
    code = 1;
  return {code, static_cast<uint8_t>(dtype.size() * 8), 1};
}

Dtype dtype_from(DlDataType type) {
  for (int i = 0; i < dtype_count; ++i) {
    Dtype dtype = dtype_of(static_cast<Dtype::Val>(i));
    DlDataType own = type_of(dtype);
    if (own.code == type.code && own.bits == type.bits && type.lanes == 1) return dtype;
  }
  raise(PyExc_ValueError, "[from_dlpack] no dtype for DLPack's type " + std::to_string(type.code) +
                              " of " + std::to_string(type.bits) + " bits");
}

// What a capsule of ours owns.
struct Exported {
  DlManagedTensor managed;
  array value;
  std::vector<int64_t> shape, strides;
  HostElements elements;
};

void delete_exported(DlManagedTensor* managed) { delete static_cast<Exported*>(managed->manager); }

// A capsule that nobody took.
void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (managed && managed->deleter) managed->deleter(managed);
}

}  // namespace

PyObject* to_dlpack(array a) {
  materialise(a);
  auto exported = std::make_unique<Exported>(Exported{{}, a, {}, {}, {}});
  for (size_t i = 0; i < a.ndim(); ++i) {
    exported->shape.push_back(a.shape()[i]);
    exported->strides.push_back(a.strides()[i]);
  }
  // The protocol does not say that memory is only to be read.
  exported->elements = elements_of(a, true);
  DlTensor& tensor = exported->managed.tensor;
  tensor = {exported->elements.address,
            {host, 0},
            static_cast<int32_t>(a.ndim()),
            type_of(a.dtype()),
            exported->shape.data(),
            exported->strides.data(),
            0};
  exported->managed.manager = exported.get();
  exported->managed.deleter = delete_exported;
  Object capsule = Object::steal(PyCapsule_New(&exported->managed, "dltensor", destroy_capsule));
  exported.release();
  return capsule.release();
}

array from_dlpack_capsule(PyObject* capsule) {
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (!managed) throw PythonError();
  const DlTensor& tensor = managed->tensor;
  if (tensor.device.type != host) {
    raise(PyExc_ValueError, "[from_dlpack] the memory is on a device of DLPack's type " +
                                std::to_string(tensor.device.type) + ", expected the host's");
  }
  Dtype dtype = dtype_from(tensor.dtype);
  Shape shape;
  Strides strides;
  int64_t row_major = 1, size = 1, lowest = 0, highest = 0;
  bool contiguous = true;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] < 0 || tensor.shape[i] > std::numeric_limits<ShapeElem>::max()) {
      raise(PyExc_OverflowError, "[from_dlpack] a dimension does not fit 32 bits");
    }
    int64_t stride = tensor.strides ? tensor.strides[i] : row_major;
    contiguous = contiguous && (tensor.shape[i] == 1 || stride == row_major);
    row_major *= tensor.shape[i];
    size *= tensor.shape[i];
    (stride < 0 ? lowest : highest) += stride * (tensor.shape[i] - 1);
    shape.insert(shape.begin(), static_cast<ShapeElem>(tensor.shape[i]));
    strides.insert(strides.begin(), stride);
  }
  PyCapsule_SetName(capsule, "used_dltensor");
  // The other side's deleter may touch Python's objects: it runs where the GIL is held.
  PyObject* holder = PyCapsule_New(managed, "holdfast", [](PyObject* self) {
    auto* owned = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(self, "holdfast"));
    if (owned->deleter) owned->deleter(owned);
  });
  if (!holder) throw PythonError();
  Object owner = Object::steal(holder);
  if (size == 0) return zeros(shape, dtype);
  char* first = static_cast<char*>(tensor.data) + tensor.byte_offset;
  auto release = [holder](void*) { drop_later(holder); };
  if (contiguous) {
    array result(first, shape, dtype, release);
    owner.release();
    return result;
  }
  // A view of the whole range that the strides reach.
  int64_t range = highest - lowest + 1;
  if (range > std::numeric_limits<ShapeElem>::max()) {
    raise(PyExc_OverflowError, "[from_dlpack] the strides reach too far");
  }
  array whole(first + lowest * dtype.size(), Shape{static_cast<ShapeElem>(range)}, dtype, release);
  owner.release();
  return as_strided(whole, shape, strides, static_cast<size_t>(-lowest));
}

}  // namespace holdfast::python
